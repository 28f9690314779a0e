"""Primitives with weights: convolutions, deconvolutions, inner products, matmuls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import algorithms, calls, layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import (
    DescribedPrimitive,
    Operand,
    Types,
    data_type_of,
    dilates,
    forward,
)
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.onednn import constants
from byoc_mlir.onednn.constants import Arg


def is_packable(value: SSAValue) -> bool:
    """True if a weight can be packed into any layout before the first run."""
    return _constant(value) is not None


def is_packable_matrix(value: SSAValue) -> bool:
    """True if a matrix can be packed; a matrix in memory that the caller owns is not packed."""
    constant = _constant(value)
    return constant is not None and not constant.is_borrowed


def _constant(value: SSAValue) -> ConstantOp | None:
    while isinstance(value.owner, dnnl.ViewOp):
        value = value.owner.source
    return value.owner if isinstance(value.owner, ConstantOp) else None


def _weights(
    value: SSAValue, stored: calls.MemoryDescriptor, packing: str = layouts.ANY
) -> tuple[calls.MemoryDescriptor, Operand]:
    """Returns the weights' descriptor for the primitive, and the argument with the stored
    layout.
    """
    packed = is_packable(value)
    wanted = calls.MemoryDescriptor(stored.dims, packing, data_type=stored.data_type)
    return wanted if packed else stored, Operand(Arg.WEIGHTS, value, stored, packed)


def _grouped(dims: Sequence[int], groups: int) -> tuple[int, ...]:
    return tuple(dims) if groups == 1 else (groups, dims[0] // groups, *dims[1:])


def _described(value: SSAValue | None, types: Types) -> calls.MemoryDescriptor | None:
    return None if value is None else types.of(value)


def _product(
    call: calls.PrimitiveCall,
    op: dnnl.WeightedWindowOp | dnnl.ProductOp,
    types: Types,
    operands: Sequence[Operand],
    others: Sequence[Operand],
) -> DescribedPrimitive:
    """Describes a primitive of source and weights; the op's bias and other operands follow."""
    bias = op.bias
    biases = [] if bias is None else [types.operand(Arg.BIAS, bias)]
    return DescribedPrimitive(
        call, (*operands, *biases, *others, types.operand(Arg.DST, op.output))
    )


def _windowed(
    op: dnnl.WeightedWindowOp,
    types: Types,
    kind: str,
    algorithm: int,
    stored: calls.MemoryDescriptor,
) -> DescribedPrimitive:
    attributes, post_operands = types.post_ops(op)
    source = types.operand(Arg.SRC, op.arguments[0])
    wanted, weights = _weights(op.weights, stored)
    call = forward(
        kind,
        algorithm,
        source.descriptor,
        wanted,
        _described(op.bias, types),
        types.of(op.output),
        ints(op.strides),
        dilates(op),
        op.begins,
        op.ends,
        attributes,
    )
    return _product(call, op, types, (source, weights), post_operands)


def convolution(op: dnnl.ConvolutionOp, types: Types) -> DescribedPrimitive:
    return _convolved(op, types, op.algorithm.data)


def _convolved(op: dnnl.WeightedWindowOp, types: Types, algorithm: str) -> DescribedPrimitive:
    """Describes a convolution by the name of its algorithm."""
    dims = _grouped(shape_of(op.weights), op.groups.value.data)
    stored = calls.MemoryDescriptor.plain(dims, data_type_of(op.weights))
    return _windowed(op, types, "convolution", algorithms.CONVOLUTION[algorithm], stored)


def quantized_convolution(op: dnnl.QuantizedConvolutionOp, types: Types) -> DescribedPrimitive:
    """Describes an int8 convolution, with the parameters of source, weights and result."""
    described = _convolved(op, types, "direct")
    per_output = 1 if op.groups.value.data == 1 else 3
    *arguments, attributes = described.call.arguments
    assert isinstance(attributes, calls.Attributes)
    scales = types.operand(constants.ATTR_SCALES | Arg.WEIGHTS, op.scales)
    zero_points = _zero_points((op.source_zero_point, op.zero_point), types)
    attributes = replace(
        attributes,
        scales=((Arg.WEIGHTS, per_output),),
        zero_points=_of_whole_tensors(zero_points),
    )
    call = replace(described.call, arguments=(*arguments, attributes))
    *operands, result = described.operands
    return DescribedPrimitive(call, (*operands, scales, *zero_points, result))


def _zero_points(values: Sequence[SSAValue], types: Types) -> list[Operand]:
    """Returns the zero points of source and result, without constants of 0.

    oneDNN's code without zero points is the fastest.
    """
    return [
        types.operand(constants.ATTR_ZERO_POINTS | argument, value)
        for argument, value in zip((Arg.SRC, Arg.DST), values, strict=False)
        if not isinstance(value.owner, ConstantOp) or value.owner.array.any()
    ]


def _of_whole_tensors(zero_points: Sequence[Operand]) -> tuple[tuple[int, int], ...]:
    """Returns the attribute for zero points of whole tensors: their arguments, each with mask 0."""
    return tuple((one.argument & ~constants.ATTR_ZERO_POINTS, 0) for one in zero_points)


def quantized_matmul(op: dnnl.QuantizedMatmulOp, types: Types) -> DescribedPrimitive:
    """Describes an int8 matmul, with the parameters of source, weights and result."""
    attributes, post_operands = types.post_ops(op)
    a, b, bias, scales, *rest = op.primary
    zero_points = _zero_points(rest, types)
    stored = transposed(types.of(b))
    wanted, weights = _weights(b, stored)
    attributes = replace(
        attributes,
        scales=((Arg.WEIGHTS, 0 if shape_of(scales) == (1,) else 2),),
        zero_points=_of_whole_tensors(zero_points),
    )
    call = calls.PrimitiveCall(
        "dnnl_matmul_primitive_desc_create",
        (calls.ENGINE, types.of(a), wanted, types.of(bias), types.of(op.output), attributes),
    )
    operands = (
        types.operand(Arg.SRC, a),
        weights,
        types.operand(Arg.BIAS, bias),
        types.operand(constants.ATTR_SCALES | Arg.WEIGHTS, scales),
        *zero_points,
        *post_operands,
        types.operand(Arg.DST, op.output),
    )
    return DescribedPrimitive(call, operands)


def by_algorithm(described: DescribedPrimitive, algorithm: str) -> DescribedPrimitive:
    """Describes a convolution with another algorithm of oneDNN, which may not support it."""
    (engine, kind, _), rest = described.call.arguments[:3], described.call.arguments[3:]
    arguments = (engine, kind, algorithms.CONVOLUTION[algorithm], *rest)
    return replace(described, call=replace(described.call, arguments=arguments))


def deconvolution(op: dnnl.DeconvolutionOp, types: Types) -> DescribedPrimitive:
    """Describes a deconvolution; in oneDNN's weights, output channels come before input
    channels.
    """
    inputs, outputs, *kernel = shape_of(op.weights)
    groups = op.groups.value.data
    size = math.prod(kernel)
    inner = layouts.strides(kernel, layouts.plain(len(kernel)))
    dims = (outputs, inputs // groups, *kernel)
    strides = (size, size * outputs, *inner)
    if groups != 1:
        dims, strides = (groups, *dims), (size * outputs * (inputs // groups), *strides)
    return _windowed(
        op,
        types,
        "deconvolution",
        constants.DECONVOLUTION_DIRECT,
        calls.MemoryDescriptor(dims, layouts.plain(len(dims)), strides),
    )


def inner_product(op: dnnl.InnerProductOp, types: Types) -> DescribedPrimitive:
    attributes, post_operands = types.post_ops(op)
    source, value = types.operand(Arg.SRC, op.primary[0]), op.primary[1]
    wanted, weights = _weights(value, types.of(value))
    bias, result = _described(op.bias, types), types.of(op.output)
    call = forward("inner_product", source.descriptor, wanted, bias, result, attributes)
    return _product(call, op, types, (source, weights), post_operands)


def transposed(descriptor: calls.MemoryDescriptor) -> calls.MemoryDescriptor:
    """Returns the descriptor of the same matrices with their last two dimensions swapped."""
    dims, strides = descriptor.dims, layouts.strides(descriptor.dims, descriptor.layout)
    return calls.MemoryDescriptor(
        (*dims[:-2], dims[-1], dims[-2]),
        descriptor.layout,
        (*strides[:-2], strides[-1], strides[-2]),
        descriptor.data_type,
    )


def matmul(op: dnnl.MatmulOp, types: Types) -> DescribedPrimitive:
    attributes, post_operands = types.post_ops(op)
    a, b = op.primary[:2]
    source, stored = types.of(a), types.of(b)
    if op.transpose_a.value.data:
        source = transposed(source)
    if op.transpose_b.value.data:
        stored = transposed(stored)
    wanted, weights = stored, Operand(Arg.WEIGHTS, b, stored)
    if is_packable_matrix(b):
        wanted, weights = _weights(b, stored, op.packing.data)
    call = calls.PrimitiveCall(
        "dnnl_matmul_primitive_desc_create",
        (calls.ENGINE, source, wanted, _described(op.bias, types), types.of(op.output), attributes),
    )
    operands = (Operand(Arg.SRC, a, source), weights)
    return _product(call, op, types, operands, post_operands)
