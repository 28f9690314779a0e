"""Quantised convolutions and sums, with what follows them in a composite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl.activations import Reader
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.dialect import EltwiseAttr, QuantizedAddOp, QuantizedConvolutionOp
from byoc_mlir.dialects.relay import ConstantOp, qnn, qnn_window
from byoc_mlir.dialects.relay.base import ints, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import ClipOp
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
class QuantizedSum:
    """A sum of bytes whose parameters are known."""

    op: qnn.AddOp
    scales: tuple[float, float]
    """Those of the operands over the result's."""
    shift: float
    """What the zero points add to the result."""
    limits: tuple[float, float] | None
    element: Attribute


def read_quantized(reader: Reader, value: SSAValue) -> QuantizedConvolution | QuantizedSum | None:
    """What ends in a value; `None` where it is neither, or a parameter is not known."""
    element = tensor_type(value).element_type
    op, limits = reader.owner(value), None
    if isinstance(op, ClipOp):
        limits = (op.a_min.value.data, op.a_max.value.data)
        op = reader.owner(op.data)
    if isinstance(op, qnn.AddOp):
        return _read_sum(reader, op, limits, element)
    if not isinstance(op, qnn.RequantizeOp):
        return None
    return _read_convolution(reader, op, limits, element)


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


def _read_convolution(
    reader: Reader,
    requantize: qnn.RequantizeOp,
    limits: tuple[float, float] | None,
    element: Attribute,
) -> QuantizedConvolution | None:
    op, bias = reader.owner(requantize.data), None
    if isinstance(op, BiasAddOp):
        op, bias = reader.owner(op.data), op.bias
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


def _known(reader: Reader, value: SSAValue) -> Array | None:
    op = reader.owner(value)
    return op.array if isinstance(op, ConstantOp) else None


def quantized(builder: Builder, found: QuantizedConvolution | QuantizedSum) -> SSAValue:
    """The `dnnl` op."""
    if isinstance(found, QuantizedSum):
        return _sum(builder, found)
    return _convolution(builder, found)


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
