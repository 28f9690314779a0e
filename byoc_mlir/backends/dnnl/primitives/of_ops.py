"""Calls of oneDNN for each `dnnl` op, and the values that an execution takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import calls, layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import (
    DescribedPrimitive,
    LayoutOf,
    Operand,
    Types,
    dilates,
    forward,
    number,
    unary,
)
from byoc_mlir.backends.dnnl.primitives.recurrent import gru, lstm
from byoc_mlir.backends.dnnl.primitives.unit_dims import described_one_way
from byoc_mlir.backends.dnnl.primitives.weighted import (
    convolution,
    deconvolution,
    inner_product,
    matmul,
    quantized_convolution,
    quantized_matmul,
)
from byoc_mlir.dialects.relay.base import ints
from byoc_mlir.onednn import constants
from byoc_mlir.onednn.constants import Arg


def primitive(op: Operation, layout: LayoutOf = dnnl.layout_of) -> DescribedPrimitive | None:
    """Returns the primitive of a `dnnl` op, in the layouts of its types or in given ones.

    Returns `None` for ops that only name memory: views and constants.
    """
    describe = _DESCRIBERS.get(type(op))
    return None if describe is None else described_one_way(describe(op, Types(layout)))


def _of_source(
    op: dnnl.PostOpsOp | dnnl.LikeSourceOp | dnnl.ResamplingOp,
    types: Types,
    kind: str,
    first: Sequence[calls.Argument],
    others: Sequence[calls.Argument] = (),
    parameters: Sequence[Operand] = (),
) -> DescribedPrimitive:
    """Describes a primitive with one source, and post-ops if the op has them.

    Args:
        first: arguments of the call before the descriptors of source and result.
        others: arguments between those descriptors and the attributes.
        parameters: operands between source and result.
    """
    source, result, attributes = op.operands[0], op.output, calls.Attributes()
    if isinstance(op, dnnl.PostOpsOp):
        attributes, parameters = types.post_ops(op)
    described = (types.of(source), types.of(result))
    call = forward(kind, *first, *described, *others, attributes)
    return unary(call, types, source, result, parameters)


def _pooling(op: dnnl.PoolingOp, types: Types) -> DescribedPrimitive:
    window = (ints(op.strides), ints(op.kernel), dilates(op), op.begins, op.ends)
    return _of_source(op, types, "pooling", [constants.POOLING[op.algorithm.data]], window)


def _resampling(op: dnnl.ResamplingOp, types: Types) -> DescribedPrimitive:
    first = (constants.RESAMPLING[op.algorithm.data], calls.NULL)
    return _of_source(op, types, "resampling", first)


def _softmax(op: dnnl.SoftmaxOp, types: Types) -> DescribedPrimitive:
    algorithm = constants.SOFTMAX[op.algorithm.data]
    return _of_source(op, types, "softmax", [algorithm], [op.axis.value.data])


def _eltwise(op: dnnl.EltwiseOp, types: Types) -> DescribedPrimitive:
    algorithm = constants.ELTWISE[op.algorithm.data]
    return _of_source(op, types, "eltwise", [algorithm], [number(op.alpha), number(op.beta)])


def _lrn(op: dnnl.LrnOp, types: Types) -> DescribedPrimitive:
    size = calls.Size(op.size.value.data)
    others = (size, number(op.alpha), number(op.beta), number(op.k))
    return _of_source(op, types, "lrn", [constants.LRN_ACROSS_CHANNELS], others)


def _binary(op: dnnl.BinaryOp, types: Types) -> DescribedPrimitive:
    if op.algorithm.data == "prelu":
        return _prelu(op, types)
    attributes, post_operands = types.post_ops(op)
    return _of_two(op, op.algorithm.data, types, attributes, post_operands)


def _quantized_add(op: dnnl.QuantizedAddOp, types: Types) -> DescribedPrimitive:
    attributes, post_operands = types.post_ops(op)
    a_scale, b_scale = op.primary[2:]
    attributes = replace(attributes, scales=((Arg.SRC, 0), (Arg.SRC_1, 0)))
    scales = (
        types.operand(constants.ATTR_SCALES | Arg.SRC, a_scale),
        types.operand(constants.ATTR_SCALES | Arg.SRC_1, b_scale),
    )
    return _of_two(op, "add", types, attributes, [*scales, *post_operands])


def _of_two(
    op: dnnl.BinaryOp | dnnl.QuantizedAddOp,
    algorithm: str,
    types: Types,
    attributes: calls.Attributes,
    others: Sequence[Operand],
) -> DescribedPrimitive:
    """Describes a binary primitive; `others` are its operands after the two tensors."""
    a, b = op.primary[:2]
    described = (types.of(a), types.of(b), types.of(op.output))
    call = calls.PrimitiveCall(
        "dnnl_binary_primitive_desc_create",
        (calls.ENGINE, constants.BINARY[algorithm], *described, attributes),
    )
    return unary(call, types, a, op.output, [types.operand(Arg.SRC_1, b), *others])


def _prelu(op: dnnl.BinaryOp, types: Types) -> DescribedPrimitive:
    attributes, post_operands = types.post_ops(op)
    source, slopes = op.primary
    described = (types.of(source), types.of(slopes), types.of(op.output))
    operands = [types.operand(Arg.WEIGHTS, slopes), *post_operands]
    return unary(forward("prelu", *described, attributes), types, source, op.output, operands)


def _batch_normalization(op: dnnl.BatchNormalizationOp, types: Types) -> DescribedPrimitive:
    flags = constants.USE_GLOBAL_STATS | constants.USE_SCALE | constants.USE_SHIFT
    if op.relu.value.data:
        flags |= constants.FUSE_RELU
    statistics = [
        types.operand(argument, value)
        for argument, value in (
            (Arg.MEAN, op.mean),
            (Arg.VARIANCE, op.variance),
            (Arg.SCALE, op.scale),
            (Arg.SHIFT, op.shift),
        )
    ]
    others = (number(op.epsilon), flags)
    return _of_source(op, types, "batch_normalization", (), others, statistics)


def _layer_normalization(op: dnnl.LayerNormalizationOp, types: Types) -> DescribedPrimitive:
    statistics, flags = None, constants.USE_SCALE | constants.USE_SHIFT
    others = (statistics, number(op.epsilon), flags)
    parameters = [types.operand(Arg.SCALE, op.scale), types.operand(Arg.SHIFT, op.shift)]
    return _of_source(op, types, "layer_normalization", (), others, parameters)


def _concat(op: dnnl.ConcatOp, types: Types) -> DescribedPrimitive:
    sources = [
        types.operand(Arg.MULTIPLE_SRC + position, value)
        for position, value in enumerate(op.sources)
    ]
    call = calls.PrimitiveCall(
        "dnnl_concat_primitive_desc_create",
        (
            calls.ENGINE,
            types.of(op.output),
            len(sources),
            op.axis.value.data,
            calls.Descriptors(tuple(source.descriptor for source in sources)),
            calls.Attributes(),
        ),
    )
    return DescribedPrimitive(call, (*sources, types.operand(Arg.DST, op.output)))


def _shuffle(op: dnnl.ShuffleOp, types: Types) -> DescribedPrimitive:
    """Describes a shuffle: oneDNN's primitive for blocked channels, otherwise a reorder."""
    if not layouts.blocks(types.layout(op.source)):
        return _shuffle_by_reorder(op, types)
    others = (op.axis.value.data, calls.Size(op.group_size.value.data))
    return _of_source(op, types, "shuffle", (), others)


def reorder(
    source: calls.MemoryDescriptor,
    destination: calls.MemoryDescriptor,
    value: SSAValue,
    result: SSAValue,
) -> DescribedPrimitive:
    """Describes a copy of `value` to `result`, from one layout to another."""
    call = calls.PrimitiveCall(
        "dnnl_reorder_primitive_desc_create",
        (source, calls.ENGINE, destination, calls.ENGINE, calls.Attributes()),
    )
    return DescribedPrimitive(
        call, (Operand(Arg.SRC, value, source), Operand(Arg.DST, result, destination))
    )


def _shuffle_by_reorder(op: dnnl.ShuffleOp, types: Types) -> DescribedPrimitive:
    """Describes a shuffle as a copy between two views that split the shuffled dimension in two.

    One of the views is transposed.
    """
    axis, size = op.axis.value.data, op.group_size.value.data
    source, destination = types.of(op.source), types.of(op.output)
    dims = source.dims
    count = dims[axis] // size
    split = (*dims[:axis], count, size, *dims[axis + 1 :])

    def view(descriptor: calls.MemoryDescriptor, outer: int, inner: int) -> calls.MemoryDescriptor:
        steps = layouts.strides(descriptor.dims, descriptor.layout)
        step = steps[axis]
        strides = (*steps[:axis], outer * step, inner * step, *steps[axis + 1 :])
        return calls.MemoryDescriptor(
            split, layouts.plain(len(split)), strides, descriptor.data_type
        )

    rows, columns = view(source, size, 1), view(destination, 1, count)
    return reorder(rows, columns, op.source, op.output)


def _pixel_shuffle(op: dnnl.PixelShuffleOp, types: Types) -> DescribedPrimitive:
    """Describes a pixel shuffle as a copy between two views with shape `[N, *block, C, ...]`.

    Blocked channels are not supported: no strides describe their views.
    """
    source, destination = types.of(op.source), types.of(op.output)
    if layouts.blocks(source.layout):  # refused: the dimensions are not the same
        return reorder(source, destination, op.source, op.output)
    block, (images, channels) = ints(op.block), destination.dims[:2]
    apart = (images, *block, channels, *source.dims[2:])
    batch, step, *steps = layouts.strides(source.dims, source.layout)
    places = layouts.strides((*block, channels), layouts.plain(len(block) + 1))
    read = (batch, *(step * one for one in places), *steps)
    batch, step, *steps = layouts.strides(destination.dims, destination.layout)
    inner = (one * size for one, size in zip(steps, block, strict=True))
    write = (batch, *steps, step, *inner)
    before, after = (
        calls.MemoryDescriptor(apart, layouts.plain(len(apart)), strides, source.data_type)
        for strides in (read, write)
    )
    return reorder(before, after, op.source, op.output)


def _reorder(op: dnnl.ReorderOp | dnnl.ConvertOp, types: Types) -> DescribedPrimitive:
    return reorder(types.of(op.source), types.of(op.output), op.source, op.output)


_DESCRIBERS: dict[type[Operation], Callable[[Any, Types], DescribedPrimitive]] = {
    dnnl.BatchNormalizationOp: _batch_normalization,
    dnnl.BinaryOp: _binary,
    dnnl.ConcatOp: _concat,
    dnnl.ConvertOp: _reorder,
    dnnl.ConvolutionOp: convolution,
    dnnl.DeconvolutionOp: deconvolution,
    dnnl.EltwiseOp: _eltwise,
    dnnl.GruOp: gru,
    dnnl.InnerProductOp: inner_product,
    dnnl.LayerNormalizationOp: _layer_normalization,
    dnnl.LrnOp: _lrn,
    dnnl.LstmOp: lstm,
    dnnl.MatmulOp: matmul,
    dnnl.PixelShuffleOp: _pixel_shuffle,
    dnnl.PoolingOp: _pooling,
    dnnl.QuantizedAddOp: _quantized_add,
    dnnl.QuantizedConvolutionOp: quantized_convolution,
    dnnl.QuantizedMatmulOp: quantized_matmul,
    dnnl.ReorderOp: _reorder,
    dnnl.ResamplingOp: _resampling,
    dnnl.ShuffleOp: _shuffle,
    dnnl.SoftmaxOp: _softmax,
}
