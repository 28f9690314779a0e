"""Quantisation: to and from integers, and products of integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from byoc_mlir.dialects.relay import elementwise, qnn
from byoc_mlir.dialects.relay.element_types import NARROW_INTEGERS, relay_type
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.qnn import (
    F32,
    I32,
    U8,
    biased,
    dynamic_parameters,
    one_number,
    product,
    quantized,
    requantized,
    scale_of,
    zero_point_of,
)
from byoc_mlir.frontend.ops.window import ConvAttributes, convolve
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value, dtype_of


def _spread(
    context: NodeContext, parameter: Value, data: Value, axis: int, block_size: int
) -> Value:
    """A scale, shaped to broadcast to `data`."""
    if parameter.rank == 0:
        return parameter
    if not block_size:
        return arith.along(context, parameter, axis, data.rank)
    axis %= data.rank
    blocks = parameter.sizes[axis]
    before, after = parameter.sizes[:axis], parameter.sizes[axis + 1 :]
    split = arith.reshape(context, parameter, (*before, blocks, 1, *after))
    repeated = arith.broadcast(context, split, (*before, blocks, block_size, *after))
    whole = arith.reshape(context, repeated, (*before, blocks * block_size, *after))
    return arith.section(context, whole, axis, 0, data.sizes[axis])


@onnx_op("QuantizeLinear")
def quantize_linear(
    context: NodeContext,
    data: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Value:
    target = U8
    if zero_point is not None:
        target = zero_point.dtype
    elif output_dtype:
        target = dtype_of(output_dtype)
    factor, wide = scale_of(context, scale), cast(context, data, F32)
    if relay_type(target) not in NARROW_INTEGERS:
        return _small_float(context, wide, _spread(context, factor, data, axis, block_size), target)
    shift = zero_point_of(context, zero_point, target)
    return context.emit(qnn.QuantizeOp, wide, factor, shift, axis=axis, block_size=block_size)


def _small_float(context: NodeContext, data: Value, scale: Value, dtype: np.dtype[Any]) -> Value:
    """`data / scale` as floats of few bits, cut to their range; their zero point is 0."""
    info: Any = ml_dtypes.finfo(dtype)
    scaled = arith.divide(context, data, scale)
    clipped = context.emit(elementwise.ClipOp, scaled, a_min=float(info.min), a_max=float(info.max))
    return cast(context, clipped, dtype)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(context: NodeContext, data: Value) -> tuple[Value, Value, Value]:
    scale, zero_point = dynamic_parameters(context, data)
    return quantized(context, data, scale, zero_point), scale, zero_point


@onnx_op("DequantizeLinear")
def dequantize_linear(
    context: NodeContext,
    data: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    target = scale.dtype
    if output_dtype:
        target = dtype_of(output_dtype)
    factor = scale_of(context, scale)
    if data.dtype != I32 and relay_type(data.dtype) not in NARROW_INTEGERS:
        spread = _spread(context, factor, data, axis, block_size)
        numbers = arith.multiply(context, cast(context, data, F32), spread)
    else:
        shift = zero_point_of(context, zero_point, data.dtype)
        numbers = context.emit(
            qnn.DequantizeOp, data, factor, shift, axis=axis, block_size=block_size
        )
    return cast(context, numbers, target)


@onnx_op("MatMulInteger")
def matmul_integer(
    context: NodeContext,
    a: Value,
    b: Value,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
) -> Value:
    return product(
        context,
        a,
        b,
        zero_point_of(context, a_zero_point, a.dtype, "a_zero_point"),
        zero_point_of(context, b_zero_point, b.dtype, "b_zero_point"),
    )


@onnx_op("ConvInteger", attributes=ConvAttributes)
def conv_integer(
    context: NodeContext,
    data: Value,
    weight: Value,
    data_zero_point: Value | None = None,
    weight_zero_point: Value | None = None,
    *,
    attributes: ConvAttributes,
) -> Value:
    zero_points = (
        zero_point_of(context, data_zero_point, data.dtype, "x_zero_point"),
        zero_point_of(context, weight_zero_point, weight.dtype, "w_zero_point"),
    )
    return convolve(context, data, weight, attributes, zero_points)


@onnx_op("QLinearMatMul")
def qlinear_matmul(
    context: NodeContext,
    a: Value,
    a_scale: Value,
    a_zero_point: Value,
    b: Value,
    b_scale: Value,
    b_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
) -> Value:
    total = matmul_integer(context, a, b, a_zero_point, b_zero_point)
    scale = arith.multiply(
        context,
        _of_rows(context, scale_of(context, a_scale, "a_scale"), total),
        scale_of(context, b_scale, "b_scale"),
    )
    unit = _of_rows(context, scale_of(context, y_scale, "y_scale"), total)
    shift = zero_point_of(context, y_zero_point, y_zero_point.dtype)
    shift = one_number(shift, "y_zero_point")
    if scale.rank < 2 and not unit.rank:
        return requantized(context, total, scale, unit, shift, -1)
    ratio = arith.divide(context, scale, unit)
    scaled = arith.multiply(context, cast(context, total, F32), ratio)
    return quantized(context, scaled, context.constant(1, F32), shift)


def _of_rows(context: NodeContext, scale: Value, total: Value) -> Value:
    """A vector with a scale for each row, shaped to broadcast to a product."""
    return arith.along(context, scale, -2, total.rank) if scale.rank == 1 else scale


@onnx_op("QLinearConv", attributes=ConvAttributes)
def qlinear_conv(
    context: NodeContext,
    data: Value,
    data_scale: Value,
    data_zero_point: Value,
    weight: Value,
    weight_scale: Value,
    weight_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    bias: Value | None = None,
    *,
    attributes: ConvAttributes,
) -> Value:
    total = conv_integer(
        context, data, weight, data_zero_point, weight_zero_point, attributes=attributes
    )
    scale = arith.multiply(
        context,
        one_number(scale_of(context, data_scale, "x_scale"), "x_scale"),
        scale_of(context, weight_scale, "w_scale"),
    )
    return requantized(
        context,
        biased(context, total, bias, 1),
        scale,
        scale_of(context, y_scale, "y_scale"),
        zero_point_of(context, y_zero_point, y_zero_point.dtype),
        1,
    )
