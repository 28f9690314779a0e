"""Windows that move over the spatial dimensions of an array: convolutions and pools.

Arrays are `[N, C, *sizes]`. Pools reduce one spatial dimension after the other, so that few
elements are read more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_mlir.numpy_ops.precision import limit
from byoc_mlir.numpy_ops.reduction import largest
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class Axis:
    """Windows along one dimension of `size`: `count` windows of `kernel` elements.

    The first one begins `begin` elements before the data; the last ends at most `end` after it.
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
        """Returns the extent of a dilated window, from its first to its last element."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """Returns the number of elements from the first window's begin to the last window's end."""
        return (self.count - 1) * self.stride + self.extent

    @property
    def padded_size(self) -> int:
        """Returns the size of the data with the padding that windows reach."""
        return max(self.reach, self.begin + self.size)

    @property
    def inside(self) -> slice:
        """Returns the slice of the data in the padded data."""
        return slice(self.begin, self.begin + self.size)

    def read_at(self, place: int) -> slice:
        """Returns the slice of the padded data that all windows read at a kernel position."""
        start = place * self.dilation
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)


def correlate(x: Array, weights: Array, axes: Sequence[Axis], groups: int) -> Array:
    """Returns a convolution for weights `[results, channels of a group, *kernel]`."""
    rank = len(axes)
    padded = np.zeros((*x.shape[:2], *(axis.padded_size for axis in axes)), x.dtype)
    padded[:, :, *(axis.inside for axis in axes)] = x
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, [axis.extent for axis in axes], tuple(range(2, rank + 2))
    )[
        :,
        :,
        *(axis.read_at(0) for axis in axes),
        *(slice(None, None, axis.dilation) for axis in axes),
    ]
    summed = ([1, *range(2 + rank, 2 + 2 * rank)], list(range(1, 2 + rank)))
    results = [
        np.tensordot(part, kernel, summed)
        for part, kernel in zip(
            np.split(windows, groups, 1), np.split(weights, groups), strict=True
        )
    ]
    return np.moveaxis(np.concatenate(results, -1), -1, 1)


def correlate_transposed(
    x: Array,
    weights: Array,
    axes: Sequence[Axis],
    groups: int,
    matmul: Callable[[Array, Array], Array] = np.matmul,
) -> Array:
    """Returns a transposed convolution for weights `[channels, results of a group, *kernel]`.

    Each element is multiplied by the weights, and added to the result. The result is NHWC in
    memory.

    Args:
        axes: windows of the forward convolution: their `count` is the size of `x`, and their `size`
            is the size of the result.
        matmul: multiplies two matrices.
    """
    data, share, results = np.moveaxis(x, 1, -1), len(weights) // groups, weights.shape[1]
    matrices = np.moveaxis(weights, 1, -1)
    whole = [axis.padded_size for axis in axes]
    result = np.zeros((len(x), *whole, groups * results), x.dtype)
    for group in range(groups):
        mine = slice(group * share, (group + 1) * share)
        spread = matmul(
            np.ascontiguousarray(data[..., mine]).reshape(-1, share),
            np.ascontiguousarray(matrices[mine]).reshape(share, -1),
        ).reshape(*data.shape[:-1], *weights.shape[2:], results)
        part = result[..., group * results : (group + 1) * results]
        for place in np.ndindex(*weights.shape[2:]):
            read = (axis.read_at(at) for axis, at in zip(axes, place, strict=True))
            part[:, *read] += spread[:, *(slice(None) for _ in axes), *place]
    return np.moveaxis(result[:, *(axis.inside for axis in axes)], -1, 1)


def max_pool(x: Array, axes: Sequence[Axis]) -> Array:
    """Returns the largest element of each window."""
    return _reduced(x, axes, np.maximum, limit(-np.inf, x.dtype))


def average_pool(x: Array, axes: tuple[Axis, ...], count_include_pad: bool) -> Array:
    """Returns the mean of each window of floats; padding counts as zeros, or not at all."""
    counts = np.ones((), x.dtype)
    for count in elements_counted(axes, with_padding=count_include_pad):
        counts = counts[..., None] * count.astype(x.dtype)
    return _reduced(x, axes, np.add, 0) / counts


def global_average_pool(x: Array) -> Array:
    """Returns the mean of each channel, accumulated in `f64`; NaN without elements."""
    axes = tuple(range(2, x.ndim))
    count = np.float64(np.prod(x.shape[2:]))
    return (np.add.reduce(x, axes, np.float64, keepdims=True) / count).astype(x.dtype)


def global_max_pool(x: Array) -> Array:
    """Returns the largest element of each channel."""
    return largest(x, tuple(range(2, x.ndim)), keepdims=True)


@lru_cache(1024)
def elements_counted(axes: tuple[Axis, ...], *, with_padding: bool = False) -> Sequence[Array]:
    """Returns the number of elements that each window has along each axis."""
    counts: list[Array] = []
    for axis in axes:
        starts = np.arange(axis.count)[:, np.newaxis] * axis.stride - axis.begin
        places = starts + np.arange(axis.kernel) * axis.dilation
        first, last = (-axis.begin, axis.size + axis.end) if with_padding else (0, axis.size)
        counts.append(np.sum((places >= first) & (places < last), axis=1))
    return counts


def _reduced(x: Array, axes: Sequence[Axis], reduce: np.ufunc, neutral: float) -> Array:
    """Returns the windows of `x` reduced to one element; `x` itself if all windows are elements."""
    for place, axis in enumerate(axes):
        if axis.kernel == axis.stride == 1 and axis.count == axis.size and not axis.begin:
            continue
        x = _reduced_along(np.moveaxis(x, place + 2, 0), axis, reduce, neutral, place + 2)
    return x


def _reduced_along(x: Array, axis: Axis, reduce: np.ufunc, neutral: float, place: int) -> Array:
    """Reduces windows along the first dimension, and moves that dimension to `place`."""
    whole, parts = _read(x, axis)
    if len(whole) > 1:  # one pass over memory instead of three
        result = reduce(whole.pop(), whole.pop())
    else:
        result = np.full_like(x, neutral, shape=(axis.count, *x.shape[1:]))
    for data in whole:
        reduce(result, data, out=result)
    for first, data in parts:
        mine = result[first : first + len(data)]
        reduce(mine, data, out=mine)
    return np.moveaxis(result, 0, place)


def _read(x: Array, axis: Axis) -> tuple[list[Array], list[tuple[int, Array]]]:
    """Returns the elements that windows along the first dimension read at each kernel position.

    The first list has arrays for all windows; the second one arrays for some windows, with the
    index of the first of these.
    """
    whole: list[Array] = []
    parts: list[tuple[int, Array]] = []
    for at in range(axis.kernel):
        start = at * axis.dilation - axis.begin
        first = max(0, -(start // axis.stride))
        count = min(axis.count, -(-(axis.size - start) // axis.stride)) - first
        if count == axis.count:
            whole.append(x[start :: axis.stride][:count])
        elif count > 0:
            parts.append((first, x[start + first * axis.stride :: axis.stride][:count]))
    return whole, parts
