"""What the importers of quantised ops share: scales, zero points, products, requantisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, nn, qnn, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import NodeRefused, Value

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)
U8 = np.dtype(np.uint8)


def scale_of(context: NodeContext, scale: Value, what: str = "scale") -> Value:
    """A scale as `f32`; a vector of one element is one number.

    Raises:
        VerifyException: it is known, and not finite and positive everywhere.
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
    """A zero point, 0 where it is left out; a vector of one element is one number.

    Raises:
        VerifyException: it is not of the type of the integers it belongs to.
    """
    if zero_point is None:
        return context.constant(0, dtype)
    if zero_point.dtype != dtype:
        raise VerifyException(f"{what} is of {zero_point.dtype}, accepted is {dtype}")
    return _single(context, zero_point)


def _single(context: NodeContext, parameter: Value) -> Value:
    return arith.reshape(context, parameter, ()) if parameter.sizes == (1,) else parameter


def one_number(value: Value, what: str) -> Value:
    """A parameter for a whole tensor.

    Raises:
        NodeRefused: it is not one number.
    """
    if value.rank:
        raise NodeRefused(f"{what} has shape {list(value.sizes)}, accepted is one number")
    return value


def quantized(context: NodeContext, data: Value, scale: Value, zero_point: Value) -> Value:
    """Numbers as integers of the zero point's type; one scale and zero point for all."""
    return context.emit(qnn.QuantizeOp, cast(context, data, F32), scale, zero_point)


def dequantized(context: NodeContext, data: Value, scale: Value, axis: int = 1) -> Value:
    """The numbers that accumulators stand for; a vector of scales goes along `axis`."""
    return context.emit(qnn.DequantizeOp, data, scale, context.constant(0, data.dtype), axis=axis)


def requantized(
    context: NodeContext, data: Value, scale: Value, y_scale: Value, y_zero_point: Value, axis: int
) -> Value:
    """Accumulators in the result's parameters; a vector of scales goes along `axis`."""
    zero = context.constant(0, data.dtype)
    return context.emit(qnn.RequantizeOp, data, scale, zero, y_scale, y_zero_point, axis=axis)


def dynamic_parameters(context: NodeContext, data: Value) -> tuple[Value, Value]:
    """The scale, and the `u8` zero point, that the range of the data asks for.

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
    rounded = context.emit(elementwise.RoundOp, shift)
    clipped = context.emit(elementwise.ClipOp, rounded, a_min=0.0, a_max=255.0)
    return scale, cast(context, clipped, U8)


def product(
    context: NodeContext, a: Value, b: Value, a_zero_point: Value, b_zero_point: Value
) -> Value:
    """The product of integer matrices, stacks of them, or vectors, less their zero points.

    A vector of zero points has one for each row of `a`, or for each column of `b`.
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


def biased(context: NodeContext, total: Value, bias: Value | None, axis: int) -> Value:
    """Accumulators plus a bias of `i32`, one for each place along `axis`."""
    if bias is None:
        return total
    return context.emit(nn.BiasAddOp, total, bias, axis=axis)


@dataclass(frozen=True)
class IntegerWeight:
    """Matrices `[units, in]` of integers, for data that is quantised when it is known.

    Scale and zero point are one number for each matrix of a stack, or one for each unit.
    """

    data: Value
    scale: Value
    zero_point: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the matrix or the stack of matrices."""
        return self.data.shape

    def at(self, context: NodeContext, index: int) -> IntegerWeight:
        """One matrix of a stack."""
        return IntegerWeight(
            arith.at(context, self.data, 0, index),
            _single(context, arith.at(context, self.scale, 0, index)),
            _single(context, arith.at(context, self.zero_point, 0, index)),
        )

    def product(self, context: NodeContext, data: Value) -> Value:
        """`data · weightᵀ` of numbers, `data [..., in]` quantised by its range."""
        own = dynamic_parameters(context, data)
        bytes_ = quantized(context, data, *own)
        total = context.emit(qnn.DenseOp, bytes_, self.data, own[1], self.zero_point)
        return dequantized(context, total, arith.multiply(context, own[0], self.scale), -1)
