"""Pools: along one spatial dimension after the other, so few elements are read more than once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from byoc_mlir.numpy_ops.precision import limit
from byoc_mlir.numpy_ops.reduction import largest
from byoc_mlir.numpy_ops.window import Axis
from byoc_mlir.tensors import Array


def max_pool(x: Array, axes: Sequence[Axis]) -> Array:
    """Returns the largest element of each window."""
    return _reduced(x, axes, np.maximum, limit(-np.inf, x.dtype))


def average_pool(x: Array, axes: tuple[Axis, ...], count_include_pad: bool) -> Array:
    """Returns the mean of each window of floats, its padding counted as zeros, or not."""
    counts = np.ones((), x.dtype)
    for count in elements_counted(axes, with_padding=count_include_pad):
        counts = counts[..., None] * count.astype(x.dtype)
    return _reduced(x, axes, np.add, 0) / counts


def global_average_pool(x: Array) -> Array:
    """Returns the mean of each channel, summed up in `f64`; NaN of no elements."""
    axes = tuple(range(2, x.ndim))
    count = np.float64(np.prod(x.shape[2:]))
    return (np.add.reduce(x, axes, np.float64, keepdims=True) / count).astype(x.dtype)


def global_max_pool(x: Array) -> Array:
    """Returns the largest element of each channel."""
    return largest(x, tuple(range(2, x.ndim)), keepdims=True)


@lru_cache(1024)
def elements_counted(axes: tuple[Axis, ...], *, with_padding: bool = False) -> Sequence[Array]:
    """Returns how many elements each window has along each axis."""
    counts: list[Array] = []
    for axis in axes:
        starts = np.arange(axis.count)[:, np.newaxis] * axis.stride - axis.begin
        places = starts + np.arange(axis.kernel) * axis.dilation
        first, last = (-axis.begin, axis.size + axis.end) if with_padding else (0, axis.size)
        counts.append(np.sum((places >= first) & (places < last), axis=1))
    return counts


def _reduced(x: Array, axes: Sequence[Axis], reduce: np.ufunc, neutral: float) -> Array:
    """Returns the windows of `x`, each reduced to one element; `x` where each has but one."""
    for place, axis in enumerate(axes):
        if axis.kernel == axis.stride == 1 and axis.count == axis.size and not axis.begin:
            continue
        x = _reduced_along(np.moveaxis(x, place + 2, 0), axis, reduce, neutral, place + 2)
    return x


def _reduced_along(x: Array, axis: Axis, reduce: np.ufunc, neutral: float, place: int) -> Array:
    """Reduces windows along the first dimension; the result has it at `place`."""
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
    """Returns what windows along the first dimension read at each of their places: that for all
    windows, and that for some of them, with the first of these."""
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
