"""Sums, pools, concatenations and activations of quantised tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from byoc_mlir.dialects.relay import elementwise, nn, qnn, qnn_window
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.nn import softmax, softmax_of_rows
from byoc_mlir.frontend.ops.quantize import (
    dequantize_linear,
    one_number,
    quantize_linear,
    quantized,
    scale_of,
    zero_point_of,
)
from byoc_mlir.frontend.ops.window import WindowAttributes, by_rank, resolve_window
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value

Parameters: TypeAlias = tuple[Value, Value]
"""Scale and zero point, one element each."""

register_op(DOMAIN, "QuantizeLinear")(quantize_linear)
register_op(DOMAIN, "DequantizeLinear")(dequantize_linear)


def parameters(
    context: NodeContext, data: Value, scale: Value, zero_point: Value | None, what: str
) -> Parameters:
    """Returns the per-tensor scale and zero point of quantised data.

    Raises:
        NodeRefused: a parameter is not one number.
    """
    shift = zero_point_of(context, zero_point, data.dtype, f"{what}_zero_point")
    return (
        one_number(scale_of(context, scale, f"{what}_scale"), f"{what}_scale"),
        one_number(shift, f"{what}_zero_point"),
    )


def _register_binary(op_type: str, op: type[qnn.BinaryOp]) -> None:
    @register_op(DOMAIN, op_type)
    def binary(
        context: NodeContext,
        a: Value,
        a_scale: Value,
        a_zero_point: Value | None,
        b: Value,
        b_scale: Value,
        b_zero_point: Value | None,
        c_scale: Value,
        c_zero_point: Value | None = None,
    ) -> Value:
        first = parameters(context, a, a_scale, a_zero_point, "A")
        second = parameters(context, b, b_scale, b_zero_point, "B")
        result = parameters(context, a, c_scale, c_zero_point, "C")
        return context.emit(op, a, b, *first, *second, *result)

    del binary


_register_binary("QLinearAdd", qnn.AddOp)
_register_binary("QLinearMul", qnn.MultiplyOp)


@register_op(DOMAIN, "QLinearConcat")
def qlinear_concat(
    context: NodeContext, y_scale: Value, y_zero_point: Value, *parts: Value, axis: int
) -> Value:
    if not parts or len(parts) % 3:
        raise NodeRefused(
            f"{len(parts)} inputs follow the parameters of the result, accepted are a tensor, its"
            " scale and its zero point for each part"
        )
    result = parameters(context, y_zero_point, y_scale, y_zero_point, "Y")
    placed: list[Value] = []
    for place in range(0, len(parts), 3):
        data, scale, zero_point = parts[place : place + 3]
        own = parameters(context, data, scale, zero_point, f"part {place // 3}")
        placed.append(context.emit(qnn.RequantizeOp, data, *own, *result))
    return arith.concatenate(context, placed, axis)


@register_op(DOMAIN, "QLinearGlobalAveragePool")
def qlinear_global_average_pool(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    *,
    channels_last: int = 0,
) -> Value:
    before = parameters(context, x, x_scale, x_zero_point, "x")
    after = parameters(context, x, y_scale, y_zero_point, "y")

    def pooled(data: Value) -> Value:
        return context.emit(by_rank(qnn_window.GLOBAL_AVG_POOL, data), data, *before, *after)

    return _channels_first(context, x, pooled, channels_last=channels_last)


@register_op(DOMAIN, "QLinearAveragePool")
def qlinear_average_pool(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None = None,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    before = parameters(context, x, x_scale, x_zero_point, "x")
    after = parameters(context, x, y_scale, y_zero_point, "y")

    attributes = WindowAttributes(auto_pad=auto_pad, pads=pads, strides=strides)

    def pooled(data: Value) -> Value:
        place = resolve_window(data.sizes[2:], kernel_shape, attributes)
        return context.emit(
            by_rank(qnn_window.AVG_POOL, data),
            data,
            *before,
            *after,
            pool_size=place.kernel,
            strides=place.strides,
            padding=place.padding,
            dilation=place.dilation,
            ceil_mode=bool(ceil_mode),
            count_include_pad=bool(count_include_pad),
        )

    return _channels_first(context, x, pooled, channels_last=channels_last)


def _channels_first(
    context: NodeContext, data: Value, pool: Callable[[Value], Value], *, channels_last: int
) -> Value:
    """Applies a pool to NCHW data; transposes NHWC data before and after it."""
    if not channels_last:
        return pool(data)
    return arith.channels_last(context, pool(arith.channels_second(context, data)))


@register_op(DOMAIN, "QLinearSigmoid")
def qlinear_sigmoid(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None = None,
) -> Value:
    before = parameters(context, x, x_scale, x_zero_point, "X")
    after = parameters(context, x, y_scale, y_zero_point, "Y")
    numbers = context.emit(qnn.DequantizeOp, x, *before)
    return quantized(context, context.emit(elementwise.SigmoidOp, numbers), *after)


@register_op(DOMAIN, "QLinearLeakyRelu")
def qlinear_leaky_relu(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None = None,
    *,
    alpha: float = 0.01,
) -> Value:
    before = parameters(context, x, x_scale, x_zero_point, "X")
    after = parameters(context, x, y_scale, y_zero_point, "Y")
    numbers = context.emit(qnn.DequantizeOp, x, *before)
    return quantized(context, context.emit(nn.LeakyReluOp, numbers, alpha=alpha), *after)


@register_op(DOMAIN, "QLinearSoftmax")
def qlinear_softmax(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value,
    *,
    opset: int,
    axis: int = -1,
) -> Value:
    before = parameters(context, x, x_scale, x_zero_point, "x")
    after = parameters(context, x, y_scale, y_zero_point, "y")
    numbers = context.emit(qnn.DequantizeOp, x, *before)
    function = softmax if opset >= 13 else softmax_of_rows
    return quantized(context, function(context, numbers, axis=axis), *after)


@register_op(DOMAIN, "QLinearWhere")
def qlinear_where(
    context: NodeContext,
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    y: Value,
    y_scale: Value,
    y_zero_point: Value,
    z_scale: Value,
    z_zero_point: Value,
) -> Value:
    result = parameters(context, x, z_scale, z_zero_point, "z")
    first = parameters(context, x, x_scale, x_zero_point, "x")
    second = parameters(context, y, y_scale, y_zero_point, "y")
    return context.emit(
        elementwise.WhereOp,
        condition,
        context.emit(qnn.RequantizeOp, x, *first, *result),
        context.emit(qnn.RequantizeOp, y, *second, *result),
    )
