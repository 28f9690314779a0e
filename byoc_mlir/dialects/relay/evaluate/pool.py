"""Numpy semantics of pools; see `evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import pool as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import widened
from byoc_mlir.dialects.relay.evaluate.means import mean_of
from byoc_mlir.dialects.relay.evaluate.nn import limit
from byoc_mlir.dialects.relay.evaluate.window import windows_of
from byoc_mlir.dialects.relay.qnn_window import QuantizedAvgPoolOp
from byoc_mlir.tensors import Array


def _max_pool_with_argmax(op: relay.MaxPoolWithArgmaxOp, data: Array) -> Sequence[Array]:
    strides, padding, dilation = op.checked_window()
    sizes, shape = data.shape[2:], shape_of(op.output)
    plane = np.arange(np.prod(sizes)).reshape(sizes[::-1] if op.column_major.value.data else sizes)
    if op.column_major.value.data:
        plane = plane.transpose()
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2]) * plane.size
    best, where = np.zeros(shape, data.dtype), np.zeros(shape, np.int64)
    for place in itertools.product(*(range(size) for size in shape[2:])):
        window: list[tuple[int, ...]] = []
        for tap in itertools.product(*(range(size) for size in ints(op.pool_size))):
            at = tuple(
                p * s - before + t * d
                for p, s, before, t, d in zip(place, strides, padding, tap, dilation, strict=False)
            )
            if all(0 <= i < size for i, size in zip(at, sizes, strict=True)):
                window.append(at)
        values = np.stack([data[(..., *at)] for at in window], -1)
        chosen = values.argmax(-1)
        best[(..., *place)] = np.take_along_axis(values, chosen[..., None], -1)[..., 0]
        where[(..., *place)] = planes + np.array([plane[at] for at in window])[chosen]
    return best, where


def _max_pool(op: relay.MaxPoolOp, data: Array) -> Array:
    lowest = limit(-np.inf, data.dtype)
    windows = windows_of(op, data, ints(op.pool_size), lowest)
    return windows.max(tuple(range(2 + op.SPATIAL_RANK, windows.ndim)))


def average(op: relay.AvgPoolOp | QuantizedAvgPoolOp, data: Array) -> Array:
    """The mean of each window of numbers."""
    n, pool = op.SPATIAL_RANK, ints(op.pool_size)
    window_axes = tuple(range(2 + n, 2 + 2 * n))
    total = windows_of(op, widened(data), pool, 0).sum(window_axes)
    counted = np.ones((1, 1, *data.shape[2:]), total.dtype)
    if not op.count_include_pad.value.data:
        return (total / windows_of(op, counted, pool, 0).sum(window_axes)).astype(data.dtype)
    _, padding, _ = op.checked_window()
    sizes = [size + padding[axis] + padding[axis + n] for axis, size in enumerate(data.shape[2:])]
    strides, _, dilation = op.checked_window()
    counts = np.ones((1, 1), total.dtype)
    for axis, size in enumerate(sizes):
        starts = np.arange(shape_of(op.output)[axis + 2]) * strides[axis]
        taps = starts[:, None] + np.arange(pool[axis]) * dilation[axis]
        counts = counts[..., None] * (taps < size).sum(1).astype(total.dtype)
    return (total / counts).astype(data.dtype)


def _global(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of all spatial dimensions."""

    def apply(op: relay.GlobalPoolOp, data: Array) -> Array:
        axes = tuple(range(2, data.ndim))
        return function(widened(data), axis=axes, keepdims=True).astype(data.dtype)

    return apply


POOL: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    **dict.fromkeys(relay.MAX_POOL.values(), _max_pool),
    **dict.fromkeys(relay.MAX_POOL_WITH_ARGMAX.values(), _max_pool_with_argmax),
    **dict.fromkeys(relay.AVG_POOL.values(), average),
    **dict.fromkeys(relay.GLOBAL_MAX_POOL.values(), _global(np.max)),
    **dict.fromkeys(relay.GLOBAL_AVG_POOL.values(), _global(mean_of)),
}
