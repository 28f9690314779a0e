"""Kernel taps of a window that overlap the image, and not only its padding."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from byoc_mlir.dialects.relay.base import ints, shape_of, sizes_of
from byoc_mlir.dialects.relay.pool import PoolOp
from byoc_mlir.dialects.relay.window import CorrelationOp, window_count

_MOST_TAPS = 1 << 12
"""Maximum number of taps to examine at each end of a window, since windows may have any size."""


@dataclass(frozen=True)
class OverlappingTaps:
    """Range of overlapping taps along one spatial axis, and the padding that remains for it."""

    taps: slice
    before: int
    after: int


def overlapping_taps(op: CorrelationOp) -> list[OverlappingTaps]:
    """Returns the range of overlapping kernel taps along each spatial axis; all other taps read
    padding.

    For an axis of symbolic size, the range is the whole window.
    """
    rank = op.SPATIAL_RANK
    strides, padding, dilation = op.checked_window()
    sizes, window = sizes_of(op.data)[2:], shape_of(op.weight)[2:]
    return [
        _along_axis(size, taps, before, after, stride, distance)
        if isinstance(size, int)
        else OverlappingTaps(slice(0, taps), before, after)
        for size, taps, before, after, stride, distance in zip(
            sizes, window, padding[:rank], padding[rank:], strides, dilation, strict=True
        )
    ]


def overlapping_taps_of_pool(op: PoolOp) -> list[OverlappingTaps] | None:
    """Returns the range of overlapping taps of a pool along each axis, or `None` if a spatial size
    is symbolic.

    If the last window reaches beyond the padding, that part counts as padding, too.
    """
    rank = op.SPATIAL_RANK
    strides, padding, dilation = op.checked_window()
    pool = ints(op.pool_size)
    found: list[OverlappingTaps] = []
    for axis, size in enumerate(sizes_of(op.data)[2:]):
        count = sizes_of(op.results[0])[2 + axis]
        if not isinstance(size, int) or not isinstance(count, int):
            return None
        stride, before, after = strides[axis], padding[axis], padding[rank + axis]
        last = (count - 1) * stride + (pool[axis] - 1) * dilation[axis] + 1
        after = max(after, last - size - before)
        found.append(_along_axis(size, pool[axis], before, after, stride, dilation[axis]))
    return found


def _along_axis(
    size: int, window: int, before: int, after: int, stride: int, dilation: int
) -> OverlappingTaps:
    extent = (window - 1) * dilation + 1
    count = window_count(size, before, after, extent, stride)

    def meets(tap: int) -> bool:
        place = tap * dilation - before
        windows = max(0, -(place // stride))  # windows before the image
        return windows < count and place + windows * stride < size

    # all others read before the image in the last window, or after it in the first
    lowest = max(0, -(((count - 1) * stride - before) // dilation))
    candidates = range(lowest, min(window, -(-(size + before) // dilation)))
    first, last = (
        next(filter(meets, islice(taps, _MOST_TAPS)), None)
        for taps in (candidates, reversed(candidates))
    )
    if first is None or last is None:
        return OverlappingTaps(slice(0, window), before, after)
    # cut taps read padding in the first or last window, so no pixel is lost
    begin = min(first, before // dilation)
    end = max(last + 1, window - after // dilation)
    cut = (window - end) * dilation
    return OverlappingTaps(slice(begin, end), before - begin * dilation, after - cut)
