"""Pools: one relay op per spatial rank, and powers around one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import index

import numpy as np

from byoc_mlir.dialects.relay import RelayOp, elementwise, pool, reduce, window
from byoc_mlir.dialects.relay.window import window_count
from byoc_mlir.dims import Size, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.window import Window, by_rank, padded_for_same, resolve_window
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value

_MAX_POOL_WITH_ARGMAX: Mapping[int, type[RelayOp]] = {
    1: pool.MaxPoolWithArgmax1DOp,
    2: pool.MaxPoolWithArgmax2DOp,
    3: pool.MaxPoolWithArgmax3DOp,
}
_MAX_POOL = {1: window.MaxPool1DOp, 2: window.MaxPool2DOp, 3: window.MaxPool3DOp}
_AVG_POOL = {1: window.AvgPool1DOp, 2: window.AvgPool2DOp, 3: window.AvgPool3DOp}
_GLOBAL_MAX = {
    1: window.GlobalMaxPool1DOp,
    2: window.GlobalMaxPool2DOp,
    3: window.GlobalMaxPool3DOp,
}
_GLOBAL_AVG = {
    1: window.GlobalAvgPool1DOp,
    2: window.GlobalAvgPool2DOp,
    3: window.GlobalAvgPool3DOp,
}


@onnx_op("MaxPool")
def max_pool(
    context: NodeContext,
    data: Value,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Sequence[Value]:
    op = by_rank(_MAX_POOL_WITH_ARGMAX if context.wants(1) else _MAX_POOL, data)
    if data.dtype.kind == "f" and not context.wants(1):
        data, auto_pad = padded_for_same(
            context, data, kernel_shape, auto_pad, strides, dilations, -math.inf
        )
    place = resolve_window(data.sizes[2:], kernel_shape, auto_pad, pads, strides, dilations)
    return context.emit_all(
        op,
        data,
        pool_size=place.kernel,
        strides=place.strides,
        padding=place.padding,
        dilation=place.dilation,
        ceil_mode=bool(ceil_mode),
        column_major=True if storage_order and context.wants(1) else None,
    )


@onnx_op("AveragePool")
def average_pool(
    context: NodeContext,
    data: Value,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    op = by_rank(_AVG_POOL, data)
    place = resolve_window(data.sizes[2:], kernel_shape, auto_pad, pads, strides, dilations)
    return context.emit(
        op,
        data,
        pool_size=place.kernel,
        strides=place.strides,
        padding=place.padding,
        dilation=place.dilation,
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
    )


@onnx_op("GlobalAveragePool")
def global_average_pool(context: NodeContext, data: Value) -> Value:
    if data.rank - 2 in _GLOBAL_AVG:
        return context.emit(_GLOBAL_AVG[data.rank - 2], data)
    return context.emit(reduce.MeanOp, data, axis=range(2, data.rank), keepdims=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(context: NodeContext, data: Value) -> Value:
    if data.rank - 2 in _GLOBAL_MAX:
        return context.emit(_GLOBAL_MAX[data.rank - 2], data)
    return context.emit(reduce.MaxOp, data, axis=range(2, data.rank), keepdims=True)


@onnx_op("LpPool")
def lp_pool(
    context: NodeContext,
    data: Value,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: int = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    place = resolve_window(data.sizes[2:], kernel_shape, auto_pad, pads, strides, dilations)
    powers = arith.power(context, context.emit(elementwise.AbsOp, data), p)
    mean = average_pool(
        context,
        powers,
        kernel_shape=kernel_shape,
        count_include_pad=1,
        dilations=place.dilation,
        pads=[*place.begins, *_reached_ends(place, data.sizes[2:], ceil=bool(ceil_mode))],
        strides=place.strides,
    )
    total = arith.multiply(context, mean, float(np.prod(kernel_shape)))
    return arith.power(context, total, 1.0 / p)


def _reached_ends(place: Window, sizes: Sequence[Size], *, ceil: bool) -> list[int]:
    """The end padding that the windows reach, so that each counts all of its elements."""
    ends: list[int] = []
    for size, kernel, stride, dilation, before, after in zip(
        sizes, place.kernel, place.strides, place.dilation, place.begins, place.ends, strict=True
    ):
        if not ceil:
            ends.append(after)
            continue
        extent = (kernel - 1) * dilation + 1
        count = window_count(size, before, after, extent, stride, ceil=True)
        ends.append(index(largest(0, (count - 1) * stride + extent - size - before)))
    return ends
