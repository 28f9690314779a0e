"""Quantised convolutions and sums, with what follows them in a composite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, f32, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl.activations import Reader
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.matrix import rows
from byoc_mlir.backends.dnnl.dialect import (
    ConvertOp,
    EltwiseAttr,
    QuantizedAddOp,
    QuantizedConvolutionOp,
    QuantizedMatmulOp,
)
from byoc_mlir.dialects.relay import ConstantOp, qnn, qnn_window
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import AddOp, CastOp, ClipOp, MultiplyOp
from byoc_mlir.dialects.relay.nn import BiasAddOp

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class QuantizedConvolution:
    """A convolution of bytes whose parameters are known."""

    op: qnn_window.QuantizedConvOp
    data: SSAValue
    weights: Array
    """With a zero point of 0."""
    bias: Array
    """`[O]`, `i32`."""
    scales: Array
    """`[O]`, those of data and weights over the result's."""
    data_zero_point: int
    zero_point: int
    limits: tuple[float, float] | None
    """The least and the largest byte, where it is not the type's."""
    element: Attribute


@dataclass(frozen=True)
class QuantizedProduct:
    """A product of bytes and constant weights."""

    op: qnn.DenseOp
    data: SSAValue
    weights: Array
    """With a zero point of 0."""
    data_zero_point: SSAValue
    scales: SSAValue | Array
    """One, or one for each unit; computed only for a result of `f32`."""
    bias: Array
    """`[N]`, in units of the result."""
    zero_point: int | None
    """That of a result of bytes."""
    limits: tuple[float, float] | None
    element: Attribute


Quantized: TypeAlias = "QuantizedConvolution | QuantizedProduct | QuantizedSum"


@dataclass(frozen=True)
class QuantizedSum:
    """A sum of bytes whose parameters are known."""

    op: qnn.AddOp
    scales: tuple[float, float]
    """Those of the operands over the result's."""
    shift: float
    """What the zero points add to the result."""
    limits: tuple[float, float] | None
    element: Attribute


def read_quantized(reader: Reader, value: SSAValue) -> Quantized | None:
    """What ends in a value; `None` where it is no such, or a parameter is not known."""
    element = tensor_type(value).element_type
    if element == f32:
        return _read_numbers(reader, value)
    op, limits = reader.owner(value), None
    if isinstance(op, ClipOp):
        limits = (op.a_min.value.data, op.a_max.value.data)
        op = reader.owner(op.data)
    if isinstance(op, qnn.AddOp):
        return _read_sum(reader, op, limits, element)
    if not isinstance(op, qnn.RequantizeOp):
        return None
    return _read_requantized(reader, op, limits, element)


def _read_sum(
    reader: Reader, op: qnn.AddOp, limits: tuple[float, float] | None, element: Attribute
) -> QuantizedSum | None:
    parameters = [
        _known(reader, one)
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
    requantize: qnn.RequantizeOp,
    limits: tuple[float, float] | None,
    element: Attribute,
) -> QuantizedConvolution | QuantizedProduct | None:
    op, bias = reader.owner(requantize.data), None
    if isinstance(op, BiasAddOp):
        op, bias = reader.owner(op.data), op.bias
    if isinstance(op, qnn.DenseOp):
        return _read_product(reader, requantize, op, bias, limits, element)
    if not isinstance(op, qnn_window.QuantizedConvOp):
        return None
    parameters = [
        _known(reader, one)
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
        _known(reader, one)
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
    """`cast(sums) * scale + constant`, without the last where it is not there."""
    op, added = reader.owner(value), None
    if isinstance(op, AddOp):
        (op, added), other = (reader.owner(op.lhs), _known(reader, op.rhs)), op.lhs
        if added is None or tensor_type(other).get_shape() != tensor_type(value).get_shape():
            return None
    if not isinstance(op, MultiplyOp):
        return None
    cast, scale = reader.owner(op.lhs), reader.resolve(op.rhs)
    if not isinstance(cast, CastOp):
        return None
    sums, bias = reader.owner(cast.data), None
    if isinstance(sums, BiasAddOp):
        sums, bias = reader.owner(sums.data), _known(reader, sums.bias)
    if not isinstance(sums, qnn.DenseOp):
        return None
    return _numbers(reader, sums, scale, bias, added)


def _numbers(
    reader: Reader, op: qnn.DenseOp, scale: SSAValue, bias: Array | None, added: Array | None
) -> QuantizedProduct | None:
    weights, known = _symmetric_weights(reader, op), _known(reader, scale)
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
    """Whether a tensor holds one number, or one for each unit along the last axis."""
    return math.prod(shape) == 1 or (math.prod(shape) == units == shape[-1])


def _symmetric_weights(reader: Reader, op: qnn.DenseOp) -> Array | None:
    """Weights of `i8` with zero points of 0."""
    weights, zero = _known(reader, op.weight), _known(reader, op.weight_zero_point)
    if weights is None or zero is None or weights.dtype != np.int8 or zero.any():
        return None
    return weights


def _known(reader: Reader, value: SSAValue) -> Array | None:
    op = reader.owner(value)
    return op.array if isinstance(op, ConstantOp) else None


def quantized(builder: Builder, found: Quantized) -> SSAValue:
    """The `dnnl` op."""
    if isinstance(found, QuantizedSum):
        return _sum(builder, found)
    if isinstance(found, QuantizedProduct):
        return _product(builder, found)
    return _convolution(builder, found)


def _product(builder: Builder, found: QuantizedProduct) -> SSAValue:
    op, zero_point = found.op, found.zero_point
    weights = builder.add(ConstantOp.of("weights", found.weights))
    bias = builder.add(ConstantOp.of("bias", found.bias.reshape(1, -1)))
    post_ops = [] if zero_point is None else _limits(found.limits, found.element, zero_point)
    product = builder.add(
        QuantizedMatmulOp(
            [
                builder.view(builder.value(op.data), rows(shape_of(op.data))),
                *(weights, bias, _scales(builder, found), _zero_point(builder, op)),
                *([] if zero_point is None else [_number(builder, zero_point)]),
            ],
            element=found.element,
            post_ops=ArrayAttr(post_ops),
        )
    )
    return builder.view(product, shape_of(op.output))


def _scales(builder: Builder, found: QuantizedProduct) -> SSAValue:
    if isinstance(found.scales, SSAValue):
        scales = builder.value(found.scales)
        return builder.view(scales, (math.prod(shape_of(scales)),))
    return builder.add(ConstantOp.of("scales", found.scales))


def _zero_point(builder: Builder, op: qnn.DenseOp) -> SSAValue:
    """That of the data as `i32`; converted when the region runs, if it is not known before."""
    known = _known(builder.reader, op.data_zero_point)
    if known is not None:
        return _number(builder, int(known))
    given = builder.view(builder.value(op.data_zero_point), (1,))
    return builder.add(ConvertOp(given, element=i32))


def _number(builder: Builder, value: int) -> SSAValue:
    return builder.add(ConstantOp.of("zero_point", np.array([value], np.int32)))


def _convolution(builder: Builder, found: QuantizedConvolution) -> SSAValue:
    op = found.op
    constants = [
        builder.add(ConstantOp.of(name, array))
        for name, array in (
            ("weights", found.weights),
            ("bias", found.bias.astype(np.float32) * found.scales),
            ("scales", found.scales),
            ("source_zero_point", np.array([found.data_zero_point], np.int32)),
            ("zero_point", np.array([found.zero_point], np.int32)),
        )
    ]
    return builder.add(
        QuantizedConvolutionOp(
            [builder.value(found.data), *constants],
            strides=list(ints(op.strides)),
            padding=list(ints(op.padding)),
            dilation=list(ints(op.dilation)),
            groups=op.groups.value.data,
            post_ops=ArrayAttr(_limits(found.limits, found.element, found.zero_point)),
            element=found.element,
        )
    )


def _sum(builder: Builder, found: QuantizedSum) -> SSAValue:
    scales = [
        builder.add(ConstantOp.of("scale", np.array([scale], np.float32))) for scale in found.scales
    ]
    shift = [EltwiseAttr.of("linear", 1.0, found.shift)] if found.shift else []
    limits = _limits(found.limits, found.element, 0)
    return builder.add(
        QuantizedAddOp(
            [builder.value(found.op.lhs), builder.value(found.op.rhs), *scales],
            post_ops=ArrayAttr([*shift, *limits]),
            element=found.element,
        )
    )


def _limits(
    limits: tuple[float, float] | None, element: Attribute, zero_point: int
) -> list[Attribute]:
    """Limits of a result, as a post-op on numbers without its zero point; none where it is the
    type's range.
    """
    if limits is None:
        return []
    range_ = np.iinfo(numpy_dtype(element))
    low, high = max(limits[0], range_.min), min(limits[1], range_.max)
    if (low, high) == (range_.min, range_.max):
        return []
    if low == zero_point and high == range_.max:
        return [EltwiseAttr.of("relu")]
    return [EltwiseAttr.of("clip", float(low - zero_point), float(high - zero_point))]
