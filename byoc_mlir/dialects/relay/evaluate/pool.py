"""Pools; see `evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import pool as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator, in_float, rounded
from byoc_mlir.dialects.relay.evaluate.window import window_axes
from byoc_mlir.dialects.relay.qnn_window import QuantizedAvgPoolOp
from byoc_mlir.numpy_ops import pool
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
    return pool.max_pool(data, window_axes(op, data, ints(op.pool_size)))


def average(op: relay.AvgPoolOp | QuantizedAvgPoolOp, data: Array) -> Array:
    """Returns the mean of each window of numbers."""
    axes, count_include_pad = window_axes(op, data, ints(op.pool_size)), op.count_include_pad
    return rounded(
        pool.average_pool, data, axes=axes, count_include_pad=bool(count_include_pad.value.data)
    )


POOL: dict[type[RelayOp], Evaluator] = {
    **dict.fromkeys(relay.MAX_POOL.values(), _max_pool),
    **dict.fromkeys(relay.MAX_POOL_WITH_ARGMAX.values(), _max_pool_with_argmax),
    **dict.fromkeys(relay.AVG_POOL.values(), average),
    **dict.fromkeys(relay.GLOBAL_MAX_POOL.values(), in_float(pool.global_max_pool)),
    **dict.fromkeys(relay.GLOBAL_AVG_POOL.values(), in_float(pool.global_average_pool)),
}
