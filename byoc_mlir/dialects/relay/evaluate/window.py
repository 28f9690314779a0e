"""Evaluation of convolutions and pools; see `evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import pool
from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import (
    Evaluator,
    element_dtype,
    in_float,
    rounded,
)
from byoc_mlir.dialects.relay.qnn_window import QuantizedAvgPoolOp
from byoc_mlir.numpy_ops import window
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.tensors import Array


def window_axes(op: relay.WindowOp, data: Array, kernel: Sequence[int]) -> tuple[window.Axis, ...]:
    """Returns the windows along each spatial dimension."""
    return _axes(op, data.shape[2:], kernel, shape_of(op.output)[2:])


def _axes(
    op: relay.WindowOp, sizes: Sequence[int], kernel: Sequence[int], counts: Sequence[int]
) -> tuple[window.Axis, ...]:
    strides, padding, dilation = op.checked_window()
    ends = padding[op.SPATIAL_RANK :]
    numbers = zip(sizes, kernel, strides, dilation, padding, ends, counts, strict=False)
    return tuple(window.Axis(*each) for each in numbers)


def correlate(op: relay.CorrelationOp, data: Array, weight: Array) -> Array:
    """Returns a convolution of arrays of one type."""
    axes, groups = window_axes(op, data, weight.shape[2:]), op.groups.value.data
    found = window.correlate(widened(data), widened(weight), axes, groups)
    return found.astype(element_dtype(op.output))


def correlate_transposed(op: relay.TransposedCorrelationOp, data: Array, weight: Array) -> Array:
    """Returns a transposed convolution of arrays of one type."""
    sizes = shape_of(op.output)[2:]
    axes, groups = _axes(op, sizes, weight.shape[2:], data.shape[2:]), op.groups.value.data
    found = window.correlate_transposed(widened(data), widened(weight), axes, groups)
    return found.astype(element_dtype(op.output))


def _max_pool_with_argmax(op: pool.MaxPoolWithArgmaxOp, data: Array) -> Sequence[Array]:
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


def _max_pool(op: pool.MaxPoolOp, data: Array) -> Array:
    return window.max_pool(data, window_axes(op, data, ints(op.pool_size)))


def average(op: pool.AvgPoolOp | QuantizedAvgPoolOp, data: Array) -> Array:
    """Returns the mean of each window of floats."""
    axes, count_include_pad = window_axes(op, data, ints(op.pool_size)), op.count_include_pad
    return rounded(
        window.average_pool, data, axes=axes, count_include_pad=bool(count_include_pad.value.data)
    )


FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    **dict.fromkeys(relay.CONV.values(), correlate),
    **dict.fromkeys(relay.CONV_TRANSPOSE.values(), correlate_transposed),
    **dict.fromkeys(pool.MAX_POOL.values(), _max_pool),
    **dict.fromkeys(pool.MAX_POOL_WITH_ARGMAX.values(), _max_pool_with_argmax),
    **dict.fromkeys(pool.AVG_POOL.values(), average),
    **dict.fromkeys(pool.GLOBAL_MAX_POOL.values(), in_float(window.global_max_pool)),
    **dict.fromkeys(pool.GLOBAL_AVG_POOL.values(), in_float(window.global_average_pool)),
}
