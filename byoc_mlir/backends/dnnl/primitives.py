"""Which oneDNN call a `dnnl` op is, and which values its execution takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import enums, layouts
from byoc_mlir.backends.dnnl.calls import (
    ENGINE,
    Attributes,
    Binary,
    Descriptors,
    Eltwise,
    MemoryDescriptor,
    PostOp,
    Prelu,
    PrimitiveCall,
    Size,
    Sum,
)
from byoc_mlir.backends.dnnl.dialect import (
    BatchNormalizationOp,
    BinaryOp,
    ConcatOp,
    ConvolutionOp,
    DeconvolutionOp,
    EltwiseAttr,
    EltwiseOp,
    InnerProductOp,
    LayerNormalizationOp,
    LrnOp,
    MatmulOp,
    PoolingOp,
    ReorderOp,
    SoftmaxOp,
    SumAttr,
    layout_of,
)
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.backends.dnnl.dialect.window import WeightedWindowOp, WindowOp
from byoc_mlir.backends.dnnl.enums import FORWARD_INFERENCE, Arg
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of

LayoutOf = Callable[[SSAValue], str]
"""The layout in which a value is, or might be."""


@dataclass(frozen=True)
class Operand:
    """An argument of an execution: a value, seen through a descriptor."""

    argument: int
    value: SSAValue
    descriptor: MemoryDescriptor
    packed: bool = False
    """The primitive chooses the layout; the constant is brought there once, at load."""


@dataclass(frozen=True)
class Primitive:
    """One primitive: the call that describes it, and its arguments, the destination last."""

    call: PrimitiveCall
    operands: tuple[Operand, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """The execution arguments, without the scratchpad."""
        return tuple(operand.argument for operand in self.operands)


def primitive(op: Operation, layout: LayoutOf = layout_of) -> Primitive | None:
    """The primitive of a `dnnl` op in the layouts of its type, or in others to try.

    `None` for ops that only name memory: views and constants.
    """
    describe = _DESCRIBERS.get(type(op))
    return None if describe is None else describe(op, _Types(layout))


class _Types:
    """Descriptors of values."""

    def __init__(self, layout: LayoutOf):
        self.layout = layout

    def of(self, value: SSAValue) -> MemoryDescriptor:
        return MemoryDescriptor(shape_of(value), self.layout(value))

    def operand(self, argument: int, value: SSAValue) -> Operand:
        return Operand(argument, value, self.of(value))

    def post_ops(self, op: PostOpsOp) -> tuple[Attributes, list[Operand]]:
        post_ops: list[PostOp] = []
        operands: list[Operand] = []
        values = iter(op.post_op_operands)
        for position, attribute in enumerate(op.post_ops):
            if isinstance(attribute, EltwiseAttr):
                post_ops.append(_eltwise_post_op(attribute))
                continue
            value = next(values)
            if isinstance(attribute, SumAttr):
                post_ops.append(Sum())
                continue
            algorithm = cast(Any, attribute).algorithm.data
            if algorithm == "prelu":
                post_ops.append(Prelu(_kept_dims(shape_of(value))))
                operands.append(self.operand(enums.prelu_arg(position), value))
            else:
                post_ops.append(Binary(enums.BINARY[algorithm], self.of(value)))
                operands.append(self.operand(enums.post_op_arg(position), value))
        return Attributes(tuple(post_ops)), operands


def _kept_dims(shape: Sequence[int]) -> int:
    return sum(1 << axis for axis, size in enumerate(shape) if size != 1)


def _eltwise_post_op(attribute: EltwiseAttr) -> Eltwise:
    algorithm = enums.ELTWISE[attribute.algorithm.data]
    return Eltwise(algorithm, attribute.alpha.value.data, attribute.beta.value.data)


def _number(attribute: FloatAttr) -> float:
    return float(attribute.value.data)


def is_packable(value: SSAValue) -> bool:
    """Whether a weight can be brought into any layout before the first run."""
    return isinstance(value.owner, ConstantOp)


def _weights(
    value: SSAValue, stored: MemoryDescriptor, packing: str = layouts.ANY
) -> tuple[MemoryDescriptor, Operand]:
    """The descriptor to create with, and the argument, which is described as it is stored."""
    packed = is_packable(value)
    wanted = MemoryDescriptor(stored.dims, packing) if packed else stored
    return wanted, Operand(Arg.WEIGHTS, value, stored, packed)


def _dilates(op: WindowOp) -> tuple[int, ...]:
    return tuple(step - 1 for step in ints(op.dilation))


def _grouped(dims: Sequence[int], groups: int) -> tuple[int, ...]:
    return tuple(dims) if groups == 1 else (groups, dims[0] // groups, *dims[1:])


def _windowed(
    op: WeightedWindowOp,
    types: _Types,
    function: str,
    algorithm: int,
    stored: MemoryDescriptor,
) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    source, result = op.arguments[0], op.output
    wanted, weights = _weights(op.weights, stored)
    bias = None if op.bias is None else types.of(op.bias)
    call = PrimitiveCall(
        function,
        (
            ENGINE,
            FORWARD_INFERENCE,
            algorithm,
            types.of(source),
            wanted,
            bias,
            types.of(result),
            ints(op.strides),
            _dilates(op),
            op.begins,
            op.ends,
            attributes,
        ),
    )
    biases = [] if op.bias is None else [types.operand(Arg.BIAS, op.bias)]
    operands = [types.operand(Arg.SRC, source), weights, *biases, *post_operands]
    return Primitive(call, (*operands, types.operand(Arg.DST, result)))


def _convolution(op: ConvolutionOp, types: _Types) -> Primitive:
    dims = _grouped(shape_of(op.weights), op.groups.value.data)
    return _windowed(
        op,
        types,
        "dnnl_convolution_forward_primitive_desc_create",
        enums.CONVOLUTION[op.algorithm.data],
        MemoryDescriptor.plain(dims),
    )


def by_winograd(described: Primitive) -> Primitive:
    """A direct convolution by Winograd's algorithm instead, which oneDNN may not have."""
    direct, winograd = enums.CONVOLUTION["direct"], enums.CONVOLUTION["winograd"]
    head, (algorithm, *rest) = described.call.arguments[:2], described.call.arguments[2:]
    assert algorithm == direct
    call = replace(described.call, arguments=(*head, winograd, *rest))
    return replace(described, call=call)


def _deconvolution(op: DeconvolutionOp, types: _Types) -> Primitive:
    """oneDNN has output channels before input channels, also here."""
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
        "dnnl_deconvolution_forward_primitive_desc_create",
        enums.DECONVOLUTION_DIRECT,
        MemoryDescriptor(dims, layouts.plain(len(dims)), strides),
    )


def _inner_product(op: InnerProductOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    source, value = op.primary[:2]
    wanted, weights = _weights(value, types.of(value))
    bias = None if op.bias is None else types.of(op.bias)
    call = PrimitiveCall(
        "dnnl_inner_product_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            types.of(source),
            wanted,
            bias,
            types.of(op.output),
            attributes,
        ),
    )
    biases = [] if op.bias is None else [types.operand(Arg.BIAS, op.bias)]
    operands = [types.operand(Arg.SRC, source), weights, *biases, *post_operands]
    return Primitive(call, (*operands, types.operand(Arg.DST, op.output)))


def transposed(descriptor: MemoryDescriptor) -> MemoryDescriptor:
    """The same matrices read with their last two dimensions swapped."""
    dims, strides = descriptor.dims, layouts.strides(descriptor.dims, descriptor.layout)
    return MemoryDescriptor(
        (*dims[:-2], dims[-1], dims[-2]),
        descriptor.layout,
        (*strides[:-2], strides[-1], strides[-2]),
    )


def _matmul(op: MatmulOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    a, b = op.primary[:2]
    source, stored = types.of(a), types.of(b)
    if op.transpose_a.value.data:
        source = transposed(source)
    if op.transpose_b.value.data:
        stored = transposed(stored)
    wanted, weights = _weights(b, stored, op.packing.data)
    bias = None if op.bias is None else types.of(op.bias)
    call = PrimitiveCall(
        "dnnl_matmul_primitive_desc_create",
        (ENGINE, source, wanted, bias, types.of(op.output), attributes),
    )
    biases = [] if op.bias is None else [types.operand(Arg.BIAS, op.bias)]
    operands = [Operand(Arg.SRC, a, source), weights, *biases, *post_operands]
    return Primitive(call, (*operands, types.operand(Arg.DST, op.output)))


def _pooling(op: PoolingOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    source = op.arguments[0]
    call = PrimitiveCall(
        "dnnl_pooling_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            enums.POOLING[op.algorithm.data],
            types.of(source),
            types.of(op.output),
            ints(op.strides),
            ints(op.kernel),
            _dilates(op),
            op.begins,
            op.ends,
            attributes,
        ),
    )
    return _unary(call, types, source, op.output, post_operands)


def _unary(
    call: PrimitiveCall,
    types: _Types,
    source: SSAValue,
    result: SSAValue,
    others: Sequence[Operand] = (),
) -> Primitive:
    operands = (types.operand(Arg.SRC, source), *others, types.operand(Arg.DST, result))
    return Primitive(call, operands)


def _softmax(op: SoftmaxOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    source = op.arguments[0]
    call = PrimitiveCall(
        "dnnl_softmax_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            enums.SOFTMAX[op.algorithm.data],
            types.of(source),
            types.of(op.output),
            op.axis.value.data,
            attributes,
        ),
    )
    return _unary(call, types, source, op.output, post_operands)


def _lrn(op: LrnOp, types: _Types) -> Primitive:
    call = PrimitiveCall(
        "dnnl_lrn_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            enums.LRN_ACROSS_CHANNELS,
            types.of(op.source),
            types.of(op.output),
            Size(op.size.value.data),
            _number(op.alpha),
            _number(op.beta),
            _number(op.k),
            Attributes(),
        ),
    )
    return _unary(call, types, op.source, op.output)


def _eltwise(op: EltwiseOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    source = op.arguments[0]
    call = PrimitiveCall(
        "dnnl_eltwise_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            enums.ELTWISE[op.algorithm.data],
            types.of(source),
            types.of(op.output),
            _number(op.alpha),
            _number(op.beta),
            attributes,
        ),
    )
    return _unary(call, types, source, op.output, post_operands)


def _binary(op: BinaryOp, types: _Types) -> Primitive:
    attributes, post_operands = types.post_ops(op)
    a, b = op.primary
    call = PrimitiveCall(
        "dnnl_binary_primitive_desc_create",
        (
            ENGINE,
            enums.BINARY[op.algorithm.data],
            types.of(a),
            types.of(b),
            types.of(op.output),
            attributes,
        ),
    )
    return _unary(call, types, a, op.output, [types.operand(Arg.SRC_1, b), *post_operands])


def _batch_normalization(op: BatchNormalizationOp, types: _Types) -> Primitive:
    flags = enums.USE_GLOBAL_STATS | enums.USE_SCALE | enums.USE_SHIFT
    call = PrimitiveCall(
        "dnnl_batch_normalization_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            types.of(op.source),
            types.of(op.output),
            _number(op.epsilon),
            flags,
            Attributes(),
        ),
    )
    statistics = [
        types.operand(argument, value)
        for argument, value in (
            (Arg.MEAN, op.mean),
            (Arg.VARIANCE, op.variance),
            (Arg.SCALE, op.scale),
            (Arg.SHIFT, op.shift),
        )
    ]
    return _unary(call, types, op.source, op.output, statistics)


def _layer_normalization(op: LayerNormalizationOp, types: _Types) -> Primitive:
    call = PrimitiveCall(
        "dnnl_layer_normalization_forward_primitive_desc_create",
        (
            ENGINE,
            FORWARD_INFERENCE,
            types.of(op.source),
            types.of(op.output),
            None,
            _number(op.epsilon),
            enums.USE_SCALE | enums.USE_SHIFT,
            Attributes(),
        ),
    )
    parameters = [types.operand(Arg.SCALE, op.scale), types.operand(Arg.SHIFT, op.shift)]
    return _unary(call, types, op.source, op.output, parameters)


def _concat(op: ConcatOp, types: _Types) -> Primitive:
    sources = [
        types.operand(Arg.MULTIPLE_SRC + position, value)
        for position, value in enumerate(op.sources)
    ]
    call = PrimitiveCall(
        "dnnl_concat_primitive_desc_create",
        (
            ENGINE,
            types.of(op.output),
            len(sources),
            op.axis.value.data,
            Descriptors(tuple(source.descriptor for source in sources)),
            Attributes(),
        ),
    )
    return Primitive(call, (*sources, types.operand(Arg.DST, op.output)))


def reorder(source: MemoryDescriptor, destination: MemoryDescriptor, value: SSAValue) -> Primitive:
    """A copy of `value` from one layout to another."""
    call = PrimitiveCall(
        "dnnl_reorder_primitive_desc_create",
        (source, ENGINE, destination, ENGINE, Attributes()),
    )
    return Primitive(call, (Operand(Arg.SRC, value, source), Operand(Arg.DST, value, destination)))


def _reorder(op: ReorderOp, types: _Types) -> Primitive:
    described = reorder(types.of(op.source), types.of(op.output), op.source)
    return _unary(described.call, types, op.source, op.output)


_DESCRIBERS: dict[type[Operation], Callable[[Any, _Types], Primitive]] = {
    BatchNormalizationOp: _batch_normalization,
    BinaryOp: _binary,
    ConcatOp: _concat,
    ConvolutionOp: _convolution,
    DeconvolutionOp: _deconvolution,
    EltwiseOp: _eltwise,
    InnerProductOp: _inner_product,
    LayerNormalizationOp: _layer_normalization,
    LrnOp: _lrn,
    MatmulOp: _matmul,
    PoolingOp: _pooling,
    ReorderOp: _reorder,
    SoftmaxOp: _softmax,
}
