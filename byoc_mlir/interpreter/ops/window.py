"""Windows of ONNX's convolutions and pools, from their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.numpy_ops.window import Axis

SAME = ("SAME_UPPER", "SAME_LOWER")
"""Values of `auto_pad` with which the number of windows is the size divided by the stride, rounded
up."""


@dataclass(frozen=True)
class Placing:
    """Attributes that place a window; omitted ones are `None`."""

    auto_pad: str | None
    strides: tuple[int, ...] | None
    dilations: tuple[int, ...] | None
    pads: tuple[int, ...] | None
    ceil_mode: int | None = 0

    @staticmethod
    def of(attributes: Mapping[str, Any]) -> Placing:
        """Returns the placing that a node's attributes describe."""
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
        """Returns strides, dilations and padding of a window; with `auto_pad` the padding is 0.

        Raises:
            NotInterpretedError: a length differs from the window's rank, or `auto_pad` is unknown.
        """
        rank = len(kernel)
        strides, dilations = self.strides or (1,) * rank, self.dilations or (1,) * rank
        pads = self.pads if self.auto_pad == "NOTSET" else None
        pads = pads or (0,) * (2 * rank)
        if self.auto_pad not in ("NOTSET", "VALID", *SAME):
            raise NotInterpretedError(f"auto_pad is {self.auto_pad}")
        if [*map(len, (strides, dilations, pads))] != [rank, rank, 2 * rank]:
            raise NotInterpretedError(f"{strides}, {dilations} and {pads} for a window of {kernel}")
        return strides, dilations, pads


@lru_cache(1024)
def window_axes(
    sizes: tuple[int, ...], kernel: tuple[int, ...], placing: Placing
) -> tuple[Axis, ...]:
    """Returns the placement of a window along each spatial dimension.

    Raises:
        NotInterpretedError: the attributes do not fit, or no window fits in the data.
    """
    auto_pad, ceil_mode = placing.auto_pad, placing.ceil_mode
    strides, dilations, pads = placing.lists(kernel)
    rank = len(kernel)
    if min(*pads, *sizes) < 0 or min(*strides, *dilations, *kernel) < 1:
        raise NotInterpretedError(
            f"a window of {kernel} by {strides}, {dilations} with padding {pads}"
        )
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
            count -= 1  # it would begin after the data
        if count < 1:
            raise NotInterpretedError(f"a window of {spread} elements does not fit in {size}")
        axes.append(Axis(size, extent, stride, dilation, begin, end, count))
    return tuple(axes)
