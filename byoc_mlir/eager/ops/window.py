"""Windows that move over the spatial dimensions of an array, in ONNX's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byoc_mlir.eager.ops.errors import NotEagerError


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


def window_axes(
    sizes: Sequence[int],
    kernel: Sequence[int],
    *,
    auto_pad: str | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    ceil_mode: int | None = 0,
) -> list[Axis]:
    """Where a window goes along each spatial dimension.

    Raises:
        NotEagerError: the attributes do not fit, or there is no place for a window.
    """
    rank = len(sizes)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads if pads and auto_pad in (None, "NOTSET") else [0] * (2 * rank)
    if len(pads) != 2 * rank or min(*pads, *sizes) < 0 or min(*strides, *dilations, *kernel) < 1:
        raise NotEagerError(f"a window of {kernel} by {strides}, {dilations} with padding {pads}")
    axes: list[Axis] = []
    numbers = zip(sizes, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)
    for size, extent, stride, dilation, begin, end in numbers:
        spread = (extent - 1) * dilation + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
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
    return axes
