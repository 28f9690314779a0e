"""Pools: one relay op per spatial rank; LpPool as powers around an average pool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import RelayOp, elementwise, pool, reduce
from byoc_mlir.dialects.relay.window import window_count
from byoc_mlir.dims import Size, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.window import (
    Window,
    WindowAttributes,
    by_rank,
    leaving_once,
    padded_for_same,
    resolve_window,
)
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value


@dataclass(frozen=True, kw_only=True)
class PoolAttributes(WindowAttributes):
    """Attributes of pools."""

    kernel_shape: Sequence[int]
    ceil_mode: int = 0

    def window(self, data: Value) -> Window:
        """Returns the window for the spatial dimensions of `data`."""
        sizes = data.sizes[2:]
        return leaving_once(resolve_window(sizes, self.kernel_shape, self), sizes)


@onnx_op("MaxPool", attributes=PoolAttributes)
def max_pool(
    context: NodeContext, data: Value, *, attributes: PoolAttributes, storage_order: int = 0
) -> Sequence[Value]:
    op = by_rank(pool.MAX_POOL_WITH_ARGMAX if context.wants(1) else pool.MAX_POOL, data)
    if data.dtype.kind == "f" and not context.wants(1):
        kernel = attributes.kernel_shape
        data, attributes = padded_for_same(context, data, kernel, attributes, -math.inf)
    return _pooled(
        context,
        op,
        data,
        attributes.window(data),
        types=(data.dtype, np.dtype(np.int64)) if context.wants(1) else (data.dtype,),
        ceil_mode=bool(attributes.ceil_mode),
        column_major=True if storage_order and context.wants(1) else None,
    )


@onnx_op("AveragePool", attributes=PoolAttributes)
def average_pool(
    context: NodeContext, data: Value, *, attributes: PoolAttributes, count_include_pad: int = 0
) -> Value:
    (result,) = _pooled(
        context,
        by_rank(pool.AVG_POOL, data),
        data,
        attributes.window(data),
        types=(data.dtype,),
        ceil_mode=bool(attributes.ceil_mode),
        count_include_pad=bool(count_include_pad),
    )
    return result


def _pooled(
    context: NodeContext,
    op: type[RelayOp],
    data: Value,
    place: Window,
    *,
    types: Sequence[np.dtype[Any]],
    ceil_mode: bool,
    **properties: bool | None,
) -> Sequence[Value]:
    """Returns the results of a pool, which have the given `types` and may be empty."""
    if not ceil_mode:
        place = _cut(place, data.sizes[2:])
    counts = _counts(place, data.sizes[2:], ceil=ceil_mode)
    if 0 in counts:
        shape = [*data.sizes[:2], *counts]
        return [arith.broadcast(context, context.constant(0, dtype), shape) for dtype in types]
    return context.emit_all(
        op,
        data,
        pool_size=place.kernel,
        strides=place.strides,
        padding=place.padding,
        dilation=place.dilation,
        ceil_mode=ceil_mode,
        **properties,
    )


def _cut(place: Window, sizes: Sequence[Size]) -> Window:
    """Crops a window that exceeds the padded data by less than a stride.

    ONNX rounds the number of windows toward zero, so that such a window still counts once.
    """
    kernel, strides = [*place.kernel], [*place.strides]
    for axis, missing in enumerate(_missing(place, sizes)):
        padded = _extent(place, axis) - missing
        if padded > 0 and 0 < missing < strides[axis]:
            kernel[axis], strides[axis] = math.ceil(padded / place.dilation[axis]), padded
    return replace(place, kernel=tuple(kernel), strides=tuple(strides))


def _counts(place: Window, sizes: Sequence[Size], *, ceil: bool) -> list[Size]:
    """Returns the number of windows along each axis; negative if the window exceeds the data by
    far.
    """
    counts: list[Size] = []
    for axis, (size, missing) in enumerate(zip(sizes, _missing(place, sizes), strict=True)):
        before, after, stride = place.begins[axis], place.ends[axis], place.strides[axis]
        count = window_count(size, before, after, _extent(place, axis), stride, ceil=ceil)
        counts.append(0 if stride <= missing < 2 * stride else count)
    return counts


def _missing(place: Window, sizes: Sequence[Size]) -> list[int]:
    """Returns the number of elements by which a window exceeds the padded data, along each axis.

    The number is 0 for a symbolic size: the op itself checks if the window fits.
    """
    return [
        max(0, _extent(place, axis) - size - place.begins[axis] - place.ends[axis])
        if isinstance(size, int)
        else 0
        for axis, size in enumerate(sizes)
    ]


def _extent(place: Window, axis: int) -> int:
    """Returns the extent of a dilated window, from its first to its last element."""
    return (place.kernel[axis] - 1) * place.dilation[axis] + 1


@onnx_op("GlobalAveragePool")
def global_average_pool(context: NodeContext, data: Value) -> Value:
    return _pooled_whole(context, data, pool.GLOBAL_AVG_POOL, reduce.MeanOp)


@onnx_op("GlobalMaxPool")
def global_max_pool(context: NodeContext, data: Value) -> Value:
    return _pooled_whole(context, data, pool.GLOBAL_MAX_POOL, reduce.MaxOp)


def _pooled_whole(
    context: NodeContext,
    data: Value,
    pools: Mapping[int, type[RelayOp]],
    reduction: type[RelayOp],
) -> Value:
    """Pools all spatial elements to one; uses a reduction if no pool supports the shape."""
    pool_op = pools.get(data.rank - 2)
    if pool_op is None or 0 in data.sizes[2:]:
        return context.emit(reduction, data, axis=range(2, data.rank), keepdims=True)
    return context.emit(pool_op, data)


@onnx_op("LpPool", attributes=PoolAttributes)
def lp_pool(context: NodeContext, data: Value, *, attributes: PoolAttributes, p: int = 2) -> Value:
    place, ceil = attributes.window(data), bool(attributes.ceil_mode)
    if not ceil:
        place = _cut(place, data.sizes[2:])
    powers = arith.power(context, context.emit(elementwise.AbsOp, data), p)
    whole = PoolAttributes(
        kernel_shape=place.kernel,
        dilations=place.dilation,
        pads=[*place.begins, *_reached_ends(place, data.sizes[2:], ceil=ceil)],
        strides=place.strides,
    )
    mean = average_pool(context, powers, attributes=whole, count_include_pad=1)
    total = arith.multiply(context, mean, float(math.prod(place.kernel)))
    return arith.power(context, total, 1.0 / p)


def _reached_ends(place: Window, sizes: Sequence[Size], *, ceil: bool) -> list[int]:
    """Returns the end padding that windows reach, so that a pool counts all elements of each
    window.
    """
    ends: list[int] = []
    for axis, size in enumerate(sizes):
        before, after, stride = place.begins[axis], place.ends[axis], place.strides[axis]
        if not ceil:
            ends.append(after)
            continue
        extent = _extent(place, axis)
        count = window_count(size, before, after, extent, stride, ceil=True)
        ends.append(index(largest(0, (count - 1) * stride + extent - size - before)))
    return ends
