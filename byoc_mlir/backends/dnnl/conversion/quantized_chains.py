"""Matching of quantised convolutions, matmuls and sums, with their successors in a composite."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay import qnn, qnn_window
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import AddOp, CastOp, ClipOp, MultiplyOp
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class Residual:
    """8-bit tensor to add to a convolution's result; the sum is scaled by a factor and shifted."""

    value: SSAValue
    limits: tuple[float, float]
    """Limits of the convolution's own result, to which it saturates before the addition."""
    factor: float
    shift: float


@dataclass(frozen=True)
class QuantizedConvolution:
    """An int8 convolution with constant parameters."""

    op: qnn_window.QuantizedConvOp
    data: SSAValue
    weights: Array
    """Weights with a zero point of 0."""
    bias: Array
    """Bias `[O]`, `i32`."""
    scales: Array
    """Scales `[O]`: scale of the data times scale of the weights, divided by the scale of the
    result."""
    data_zero_point: int
    zero_point: int
    limits: tuple[float, float] | None
    """Smallest and largest result, if they differ from the type's."""
    element: Attribute
    residual: Residual | None = None
    """Residual, if any. With it, `scales` are relative to the residual's scale, and `zero_point` is
    0.
    """


@dataclass(frozen=True)
class QuantizedProduct:
    """An int8 matmul with constant weights."""

    op: qnn.DenseOp
    data: SSAValue
    weights: Array
    """Weights with a zero point of 0."""
    data_zero_point: SSAValue
    scales: SSAValue | Array
    """One scale, or one for each unit; it may be a computed value only if the result is `f32`."""
    bias: Array
    """Bias `[N]`, in units of the result."""
    zero_point: int | None
    """Zero point of an 8-bit result."""
    limits: tuple[float, float] | None
    element: Attribute


Quantized: TypeAlias = "QuantizedConvolution | QuantizedProduct | QuantizedSum"


@dataclass(frozen=True)
class QuantizedSum:
    """A sum of 8-bit tensors with constant parameters."""

    op: qnn.AddOp
    scales: tuple[float, float]
    """Scales of the operands, divided by the scale of the result."""
    shift: float
    """Contribution of the zero points to the result."""
    limits: tuple[float, float] | None
    element: Attribute


def read_quantized(reader: Reader, value: SSAValue) -> Quantized | None:
    """Matches a quantised op and its successors that end in `value`.

    Returns `None` if there is no match, or if a parameter is no constant.
    """
    element = tensor_type(value).element_type
    if element == f32:
        return _read_numbers(reader, value)
    op, limits = reader.owner(value), None
    if isinstance(op, ClipOp):
        limits = (op.a_min.value.data, op.a_max.value.data)
        op = reader.owner(op.data)
    if isinstance(op, qnn.AddOp):
        return _read_sum(reader, op, limits, element)
    return _read_requantized(reader, op, limits, element)


def read_sum_with_residual(reader: Reader, value: SSAValue) -> QuantizedConvolution | None:
    """Matches a sum of a convolution's result and another tensor.

    Returns the convolution with the other tensor as residual.
    """
    op, limits = reader.owner(value), None
    if isinstance(op, ClipOp):
        limits = (op.a_min.value.data, op.a_max.value.data)
        op = reader.owner(op.data)
    element = tensor_type(value).element_type
    found = _read_sum(reader, op, limits, element) if isinstance(op, qnn.AddOp) else None
    if found is None:
        return None
    lhs, rhs = found.op.lhs, found.op.rhs
    for number, (one, other) in enumerate(((lhs, rhs), (rhs, lhs))):
        convolution = _read_requantized(reader, reader.owner(one), limits, element)
        if isinstance(convolution, QuantizedConvolution) and one.type == value.type:
            own, others = found.scales[number], found.scales[1 - number]
            zero, range_ = convolution.zero_point, np.iinfo(numpy_dtype(element))
            low, high = ((end - zero) * own / others for end in (range_.min, range_.max))
            return replace(
                convolution,
                scales=convolution.scales * np.float32(own / others),
                zero_point=0,
                residual=Residual(other, (low, high), others, found.shift + zero * own),
            )
    return None


def _read_sum(
    reader: Reader, op: qnn.AddOp, limits: tuple[float, float] | None, element: Attribute
) -> QuantizedSum | None:
    parameters = [
        reader.array(one)
        for one in (
            *(op.lhs_scale, op.rhs_scale, op.output_scale),
            *(op.lhs_zero_point, op.rhs_zero_point, op.output_zero_point),
        )
    ]
    known = [float(one) for one in parameters if one is not None]
    if len(known) < len(parameters):
        return None
    lhs, rhs, output, lhs_zero, rhs_zero, output_zero = known
    scales = lhs / output, rhs / output
    shift = output_zero - lhs_zero * scales[0] - rhs_zero * scales[1]
    return QuantizedSum(op, scales, shift, limits, element)


def _read_requantized(
    reader: Reader,
    requantize: Operation | None,
    limits: tuple[float, float] | None,
    element: Attribute,
) -> QuantizedConvolution | QuantizedProduct | None:
    if not isinstance(requantize, qnn.RequantizeOp):
        return None
    op, bias, channels = reader.owner(requantize.data), None, 1
    biased = op if isinstance(op, BiasAddOp) else None
    if biased is not None:
        op, bias = reader.owner(biased.data), biased.bias
    if isinstance(op, qnn.DenseOp):
        channels = len(shape_of(op.output)) - 1
    if not _belong_to(channels, requantize, biased):
        return None
    if isinstance(op, qnn.DenseOp):
        return _read_product(reader, requantize, op, bias, limits, element)
    if not isinstance(op, qnn_window.QuantizedConvOp):
        return None
    parameters = [
        reader.array(one)
        for one in (
            *(op.weight, op.data_zero_point, op.weight_zero_point, requantize.input_scale),
            *(requantize.input_zero_point, requantize.output_scale, requantize.output_zero_point),
            *(() if bias is None else (bias,)),
        )
    ]
    known = [one for one in parameters if one is not None]
    if len(known) < len(parameters):
        return None
    weights, data_zero, weight_zero, given, zero, wanted, result_zero, *biases = known
    if weights.dtype != np.int8 or weight_zero.any() or zero.any():
        return None
    outputs = len(weights)
    return QuantizedConvolution(
        op,
        op.data,
        weights,
        biases[0] if biases else np.zeros(outputs, np.int32),
        np.broadcast_to(given / wanted, outputs).astype(np.float32),
        int(data_zero),
        int(result_zero),
        limits,
        element,
    )


def _belong_to(channels: int, requantize: qnn.RequantizeOp, biased: BiasAddOp | None) -> bool:
    """True if scales and biases are scalars or lie along the axis `channels`."""
    scaled = not shape_of(requantize.input_scale) or requantize.positive_axis == channels
    return scaled and (biased is None or biased.positive_axis == channels)


def _read_product(
    reader: Reader,
    requantize: qnn.RequantizeOp,
    op: qnn.DenseOp,
    bias: SSAValue | None,
    limits: tuple[float, float] | None,
    element: Attribute,
) -> QuantizedProduct | None:
    weights = _symmetric_weights(reader, op)
    parameters = [
        reader.array(one)
        for one in (
            *(requantize.input_scale, requantize.input_zero_point),
            *(requantize.output_scale, requantize.output_zero_point),
            *(() if bias is None else (bias,)),
        )
    ]
    known = [one for one in parameters if one is not None]
    if weights is None or len(known) < len(parameters):
        return None
    given, zero, wanted, result_zero, *biases = known
    if zero.any():
        return None
    scales = np.broadcast_to(given / wanted, len(weights)).astype(np.float32)
    total = biases[0] if biases else np.zeros(len(weights), np.int32)
    return QuantizedProduct(
        op,
        op.data,
        weights,
        op.data_zero_point,
        scales,
        total.astype(np.float32) * scales,
        int(result_zero),
        limits,
        element,
    )


def _read_numbers(reader: Reader, value: SSAValue) -> QuantizedProduct | None:
    """Matches `cast(sums) * scale + constant`; the constant is optional."""
    op, added = reader.owner(value), None
    if isinstance(op, AddOp):
        (op, added), other = (reader.owner(op.lhs), reader.array(op.rhs)), op.lhs
        if added is None or tensor_type(other).get_shape() != tensor_type(value).get_shape():
            return None
    if not isinstance(op, MultiplyOp):
        return None
    cast, scale = reader.owner(op.lhs), reader.resolve(op.rhs)
    if not isinstance(cast, CastOp):
        return None
    sums, bias = reader.owner(cast.data), None
    if isinstance(sums, BiasAddOp):
        sums, bias = reader.owner(sums.data), reader.array(sums.bias)
    if not isinstance(sums, qnn.DenseOp):
        return None
    return _numbers(reader, sums, scale, bias, added)


def _numbers(
    reader: Reader, op: qnn.DenseOp, scale: SSAValue, bias: Array | None, added: Array | None
) -> QuantizedProduct | None:
    weights, known = _symmetric_weights(reader, op), reader.array(scale)
    if weights is None or (bias is not None and known is None):
        return None
    units = len(weights)
    if any(not _is_along(shape, units) for shape in _shapes(scale, added)):
        return None
    total = np.zeros(units, np.float32)
    if bias is not None and known is not None:
        total += bias.astype(np.float32) * known.reshape(-1)
    if added is not None:
        total += added.reshape(-1)
    return QuantizedProduct(op, op.data, weights, op.data_zero_point, scale, total, None, None, f32)


def _shapes(scale: SSAValue, added: Array | None) -> list[tuple[int, ...]]:
    shapes = [tensor_type(scale).get_shape()]
    return shapes if added is None else [*shapes, added.shape]


def _is_along(shape: tuple[int, ...], units: int) -> bool:
    """True if a tensor of this shape holds one value, or one for each unit along the last axis."""
    return math.prod(shape) == 1 or (math.prod(shape) == units == shape[-1])


def _symmetric_weights(reader: Reader, op: qnn.DenseOp) -> Array | None:
    """Returns `i8` weights, if all their zero points are 0, else `None`."""
    weights, zero = reader.array(op.weight), reader.array(op.weight_zero_point)
    if weights is None or zero is None or weights.dtype != np.int8 or zero.any():
        return None
    return weights
