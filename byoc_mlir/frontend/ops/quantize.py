"""Quantisation: to and from integers, and products of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from byoc_mlir.dialects.relay import elementwise, logic, nn, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.nn import stacked_product
from byoc_mlir.frontend.ops.window import convolve
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value

_F32 = np.dtype(np.float32)
_I32 = np.dtype(np.int32)


def value_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The smallest and the largest number of a type."""
    info: Any
    try:
        info = ml_dtypes.iinfo(dtype)
    except ValueError:
        info = ml_dtypes.finfo(dtype)
    return float(info.min), float(info.max)


def _expanded(
    context: NodeContext, parameter: Value, data: Value, axis: int, block_size: int
) -> Value:
    """A scale or zero point, shaped to broadcast to `data`."""
    if parameter.rank == 0 or (parameter.rank == 1 and parameter.shape[0] == 1):
        return arith.reshape(context, parameter, ())
    if parameter.rank == 1 and not block_size:
        return arith.along(context, parameter, axis, data.rank)
    axis %= data.rank
    blocks = parameter.shape[axis]
    before, after = parameter.shape[:axis], parameter.shape[axis + 1 :]
    split = arith.reshape(context, parameter, (*before, blocks, 1, *after))
    repeated = arith.broadcast(context, split, (*before, blocks, block_size, *after))
    whole = arith.reshape(context, repeated, (*before, blocks * block_size, *after))
    return arith.section(context, whole, axis, 0, data.shape[axis])


def saturated(context: NodeContext, data: Value, dtype: np.dtype[Any]) -> Value:
    """`data` cast to `dtype`, clamped to what that holds."""
    low, high = value_range(dtype)
    clipped = context.emit(elementwise.ClipOp, data, a_min=low, a_max=high)
    return cast(context, clipped, dtype)


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
    target = np.dtype(np.uint8)
    if zero_point is not None:
        target = zero_point.dtype
    elif output_dtype:
        target = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(output_dtype))
    factor = cast(context, _expanded(context, scale, data, axis, block_size), _F32)
    scaled = arith.divide(context, cast(context, data, _F32), factor)
    if target.kind not in "iu" and "int" not in target.name:
        return saturated(context, scaled, target)
    rounded = context.emit(elementwise.RoundOp, scaled)
    if zero_point is not None:
        shift = _expanded(context, zero_point, data, axis, block_size)
        rounded = arith.add(context, rounded, cast(context, shift, _F32))
    return saturated(context, rounded, target)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(context: NodeContext, data: Value) -> tuple[Value, Value, Value]:
    """To `u8`, with the scale and the zero point that the range of the data asks for.

    Not by the standard's body, whose scale is 0 where all data is; ONNX Runtime's is 1 there.
    """
    axes = range(data.rank)
    top = arith.maximum(
        context, arith.reduced(context, reduce.MaxOp, data, axes, keepdims=False), 0
    )
    low = arith.minimum(
        context, arith.reduced(context, reduce.MinOp, data, axes, keepdims=False), 0
    )
    extent = arith.subtract(context, top, low)
    is_flat = context.emit(logic.EqualOp, top, low)
    scale = arith.where(context, is_flat, 1, arith.divide(context, extent, 255))
    shift = arith.subtract(context, 0, arith.divide(context, low, scale))
    zero_point = saturated(context, context.emit(elementwise.RoundOp, shift), np.dtype(np.uint8))
    return quantize_linear(context, data, scale, zero_point), scale, zero_point


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
        target = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(output_dtype))
    wide = cast(context, data, _F32)
    if zero_point is not None:
        shift = _expanded(context, zero_point, data, axis, block_size)
        wide = arith.subtract(context, wide, cast(context, shift, _F32))
    factor = cast(context, _expanded(context, scale, data, axis, block_size), _F32)
    return cast(context, arith.multiply(context, wide, factor), target)


def _centred(context: NodeContext, data: Value, zero_point: Value | None, axis: int) -> Value:
    """`data - zero_point` as `i32`; a zero point per channel goes along `axis`."""
    wide = cast(context, data, _I32)
    if zero_point is None:
        return wide
    shift = cast(context, zero_point, _I32)
    if shift.rank == 1:
        size = shift.shape[0]
        shape = [size if i == axis % data.rank and size > 1 else 1 for i in range(data.rank)]
        shift = arith.reshape(context, shift, shape)
    return arith.subtract(context, wide, shift)


@onnx_op("MatMulInteger")
def matmul_integer(
    context: NodeContext,
    a: Value,
    b: Value,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
) -> Value:
    left = _centred(context, a, a_zero_point, -2)
    return stacked_product(context, left, _centred(context, b, b_zero_point, -1))


@onnx_op("ConvInteger")
def conv_integer(
    context: NodeContext,
    data: Value,
    weight: Value,
    data_zero_point: Value | None = None,
    weight_zero_point: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    image = _centred(context, data, data_zero_point, 1)
    kernel = _centred(context, weight, weight_zero_point, 0)
    return convolve(context, image, kernel, auto_pad, dilations, group, kernel_shape, pads, strides)


def _requantized(
    context: NodeContext, total: Value, scales: Sequence[Value], zero_point: Value, axis: int
) -> Value:
    """`total * scales[0] * scales[1] / scales[2] + zero_point` in the zero point's type."""
    factors = [cast(context, scale, _F32) for scale in scales]
    factors = [
        arith.along(context, factor, axis, total.rank)
        if factor.rank == 1 and factor.shape[0] > 1
        else arith.reshape(context, factor, ())
        if factor.rank < 2
        else factor
        for factor in factors
    ]
    ratio = arith.divide(context, arith.multiply(context, factors[0], factors[1]), factors[2])
    rounded = context.emit(
        elementwise.RoundOp, arith.multiply(context, cast(context, total, _F32), ratio)
    )
    shift = cast(context, arith.reshape(context, zero_point, ()), _F32)
    return saturated(context, arith.add(context, rounded, shift), zero_point.dtype)


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
    left = _centred(context, a, a_zero_point, -2)
    total = stacked_product(context, left, _centred(context, b, b_zero_point, -1))
    return _requantized(context, total, (a_scale, b_scale, y_scale), y_zero_point, -1)


@onnx_op("QLinearConv")
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
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    image = _centred(context, data, data_zero_point, 1)
    kernel = _centred(context, weight, weight_zero_point, 0)
    total = convolve(
        context, image, kernel, auto_pad, dilations, group, kernel_shape, pads, strides
    )
    if bias is not None:
        total = context.emit(nn.BiasAddOp, total, bias, axis=1)
    return _requantized(context, total, (data_scale, weight_scale, y_scale), y_zero_point, 1)
