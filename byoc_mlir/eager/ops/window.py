"""Windows that move over the spatial dimensions of an array, in ONNX's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from byoc_mlir.eager.ops.errors import NotEagerError

SAME = ("SAME_UPPER", "SAME_LOWER")
"""Paddings with which there are as many windows as strides in the data."""


@dataclass(frozen=True)
class Axis:
    """A window along one dimension of `size`: `count` places, each of `kernel` elements.

    Its first place begins `begin` elements before the data; the last ends at most `end` behind.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    count: int

    @property
    def extent(self) -> int:
        """The elements from the first to the last of a window."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """The elements from the first of the first window to the last of the last one."""
        return (self.count - 1) * self.stride + self.extent

    @property
    def padded_size(self) -> int:
        """The elements of the data with as many around as windows reach."""
        return max(self.reach, self.begin + self.size)

    @property
    def inside(self) -> slice:
        """Where the data are among the padded elements."""
        return slice(self.begin, self.begin + self.size)


@dataclass(frozen=True)
class Placing:
    """The attributes that say where a window goes; what is left out is `None`."""

    auto_pad: str | None
    strides: tuple[int, ...] | None
    dilations: tuple[int, ...] | None
    pads: tuple[int, ...] | None
    ceil_mode: int | None = 0

    @staticmethod
    def of(attributes: Mapping[str, Any]) -> Placing:
        """Those of a node."""
        strides, dilations, pads = (
            None if values is None else tuple(values)
            for values in map(attributes.get, ("strides", "dilations", "pads"))
        )
        return Placing(
            attributes["auto_pad"], strides, dilations, pads, attributes.get("ceil_mode")
        )

    def lists(
        self, kernel: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The strides, dilations and padding of a window; no padding where it is to be found.

        Raises:
            NotEagerError: they are not of as many dimensions, or the padding has an unknown name.
        """
        rank = len(kernel)
        strides, dilations = self.strides or (1,) * rank, self.dilations or (1,) * rank
        pads = self.pads if self.auto_pad == "NOTSET" else None
        pads = pads or (0,) * (2 * rank)
        if self.auto_pad not in ("NOTSET", "VALID", *SAME):
            raise NotEagerError(f"auto_pad is {self.auto_pad}")
        if [*map(len, (strides, dilations, pads))] != [rank, rank, 2 * rank]:
            raise NotEagerError(f"{strides}, {dilations} and {pads} for a window of {kernel}")
        return strides, dilations, pads


@lru_cache(1024)
def window_axes(
    sizes: tuple[int, ...], kernel: tuple[int, ...], placing: Placing
) -> tuple[Axis, ...]:
    """Where a window goes along each spatial dimension.

    Raises:
        NotEagerError: the attributes do not fit, or there is no place for a window.
    """
    auto_pad, ceil_mode = placing.auto_pad, placing.ceil_mode
    strides, dilations, pads = placing.lists(kernel)
    rank = len(kernel)
    if min(*pads, *sizes) < 0 or min(*strides, *dilations, *kernel) < 1:
        raise NotEagerError(f"a window of {kernel} by {strides}, {dilations} with padding {pads}")
    axes: list[Axis] = []
    numbers = zip(sizes, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)
    for size, extent, stride, dilation, begin, end in numbers:
        spread = (extent - 1) * dilation + 1
        if auto_pad in SAME:
            count = -(-size // stride)
            needed = max(0, (count - 1) * stride + spread - size)
            begin, end = needed // 2, needed - needed // 2
            if auto_pad == "SAME_LOWER":
                begin, end = end, begin
        room = size + begin + end - spread
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= size + begin:
            count -= 1  # it would begin behind the data
        if count < 1:
            raise NotEagerError(f"a window of {spread} elements does not fit in {size}")
        axes.append(Axis(size, extent, stride, dilation, begin, end, count))
    return tuple(axes)
