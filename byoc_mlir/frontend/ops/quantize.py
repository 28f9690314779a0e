"""Quantisation, dequantisation, and matmuls and convolutions of quantised data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, qnn, reduce
from byoc_mlir.dialects.relay.element_types import NARROW_INTEGERS, relay_type
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.window import ConvAttributes, convolve
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value, dtype_of

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)
U8 = np.dtype(np.uint8)


def scale_of(context: NodeContext, scale: Value, what: str = "scale") -> Value:
    """Returns a scale as `f32`; a vector of one element becomes a scalar.

    Raises:
        VerifyException: the scale is constant, and not finite and positive everywhere.
    """
    known = scale.constant
    if known is not None:
        numbers = np.asarray(known, np.float64)
        wrong = numbers[~(np.isfinite(numbers) & (numbers > 0))]
        if wrong.size:
            raise VerifyException(f"{what} has {wrong[0]}, accepted are finite numbers above 0")
    return cast(context, _single(context, scale), F32)


def zero_point_of(
    context: NodeContext,
    zero_point: Value | None,
    dtype: np.dtype[Any],
    what: str = "zero point",
) -> Value:
    """Returns a zero point, or 0 if it is omitted; a vector of one element becomes a scalar.

    Raises:
        VerifyException: the zero point's type is not `dtype`.
    """
    if zero_point is None:
        return context.constant(0, dtype)
    if zero_point.dtype != dtype:
        raise VerifyException(f"{what} is of {zero_point.dtype}, accepted is {dtype}")
    return _single(context, zero_point)


def _single(context: NodeContext, parameter: Value) -> Value:
    return arith.reshape(context, parameter, ()) if parameter.sizes == (1,) else parameter


def one_number(value: Value, what: str) -> Value:
    """Returns a quantisation parameter, after checking that it is one number for the whole
    tensor.

    Raises:
        NodeRefused: the parameter is not one number.
    """
    if value.rank:
        raise NodeRefused(f"{what} has shape {list(value.sizes)}, accepted is one number")
    return value


def quantized(context: NodeContext, data: Value, scale: Value, zero_point: Value) -> Value:
    """Quantises data to the zero point's type, with one scale and zero point."""
    return context.emit(qnn.QuantizeOp, cast(context, data, F32), scale, zero_point)


def dequantized(context: NodeContext, data: Value, scale: Value, axis: int = 1) -> Value:
    """Dequantises accumulators to f32; a vector of scales lies along `axis`."""
    return context.emit(qnn.DequantizeOp, data, scale, context.constant(0, data.dtype), axis=axis)


def requantized(
    context: NodeContext, data: Value, scale: Value, y_scale: Value, y_zero_point: Value, axis: int
) -> Value:
    """Requantises accumulators to the result's parameters; a vector of scales lies along `axis`."""
    zero = context.constant(0, data.dtype)
    return context.emit(qnn.RequantizeOp, data, scale, zero, y_scale, y_zero_point, axis=axis)


def dynamic_parameters(context: NodeContext, data: Value) -> tuple[Value, Value]:
    """Returns the scale and the `u8` zero point for data that is quantised by its range.

    If all data is 0, the scale is 1, as in ONNX Runtime; the function body of the standard returns
    0.
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
    rounded = context.emit(elementwise.RoundOp, shift)
    clipped = context.emit(elementwise.ClipOp, rounded, a_min=0.0, a_max=255.0)
    return scale, cast(context, clipped, U8)


def product(
    context: NodeContext, a: Value, b: Value, a_zero_point: Value, b_zero_point: Value
) -> Value:
    """Returns the integer matmul of `a - a_zero_point` and `b - b_zero_point`.

    The operands are matrices, batches of matrices or vectors. A vector of zero points has an
    element for each row of `a`, or for each column of `b`.
    """
    is_weight = b.rank == 2 and b_zero_point.rank < 2 and a.rank > 0 and a_zero_point.rank == 0
    if b.constant is not None and is_weight:
        return context.emit(qnn.DenseOp, a, b.transposed, a_zero_point, b_zero_point)

    def multiplied(left: Value, right: Value) -> Value:
        shifts = [
            arith.along(context, shift, axis, side.rank) if shift.rank == 1 else shift
            for shift, axis, side in ((a_zero_point, -2, left), (b_zero_point, -1, right))
        ]
        return context.emit(qnn.MatmulOp, left, right, *shifts)

    return arith.stacked(context, a, b, multiplied)


@dataclass(frozen=True)
class IntegerWeight:
    """Integer matrices `[units, in]`, for data that is quantised at run time.

    There is one scale and one zero point for each matrix, or for each unit.
    """

    data: Value
    scale: Value
    zero_point: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the matrix or batch of matrices."""
        return self.data.shape

    def at(self, context: NodeContext, index: int) -> IntegerWeight:
        """Returns the matrix with this index in the batch."""
        return IntegerWeight(
            arith.at(context, self.data, 0, index),
            _single(context, arith.at(context, self.scale, 0, index)),
            _single(context, arith.at(context, self.zero_point, 0, index)),
        )

    def product(self, context: NodeContext, data: Value) -> Value:
        """Returns `data · weightᵀ` in f32; quantises `data [..., in]` by its range."""
        own = dynamic_parameters(context, data)
        bytes_ = quantized(context, data, *own)
        total = context.emit(qnn.DenseOp, bytes_, self.data, own[1], self.zero_point)
        return dequantized(context, total, arith.multiply(context, own[0], self.scale), -1)


def _spread(
    context: NodeContext, parameter: Value, data: Value, axis: int, block_size: int
) -> Value:
    """Returns a scale, shaped to broadcast to `data`."""
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
    """Returns `data / scale` as floats of 8 bits or less, clamped to their range; their zero point
    is 0.
    """
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
    """Returns a vector of scales, one per row of the matmul, shaped to broadcast to its result."""
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
        arith.biased(context, total, bias, 1),
        scale,
        scale_of(context, y_scale, "y_scale"),
        zero_point_of(context, y_zero_point, y_zero_point.dtype),
        1,
    )
