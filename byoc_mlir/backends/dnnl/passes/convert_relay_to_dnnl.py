"""The pass `convert-relay-to-dnnl`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import bf16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.backends.dnnl.conversion import matrix, others, window
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.chain import PostOpChain, Step, read_chain
from byoc_mlir.backends.dnnl.conversion.quantized import lookup, quantized, requantized
from byoc_mlir.backends.dnnl.conversion.quantized_chains import (
    read_quantized,
    read_sum_with_residual,
)
from byoc_mlir.backends.dnnl.conversion.recurrent import recurrent_layer
from byoc_mlir.backends.dnnl.partition.layer_norm import read_layer_norm
from byoc_mlir.backends.dnnl.partition.recurrent_layer import RecurrentLayer, read_recurrent_layer
from byoc_mlir.backends.dnnl.partition.shuffles import read_shuffle
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.dialects import byoc
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    elementwise,
    image,
    nn,
    pool,
    qnn,
    reduce,
    transform,
)
from byoc_mlir.dialects.relay import window as relay_window
from byoc_mlir.dialects.relay.base import tensor_type

_WITH_POST_OPS: tuple[
    tuple[type[RelayOp], Callable[[Builder, Any, Sequence[Step]], SSAValue]], ...
] = (
    (relay_window.ConvOp, window.convolution),
    (relay_window.ConvTransposeOp, window.deconvolution),
    (nn.DenseOp, matrix.dense),
    (nn.MatmulOp, matrix.matmul),
    (nn.BatchNormOp, others.batch_norm),
)
"""Ops that become a primitive with a chain of post-ops."""

_ALONE: tuple[tuple[type[RelayOp], Callable[[Builder, Any], SSAValue]], ...] = (
    (pool.PoolOp, window.pooling),
    (pool.GlobalPoolOp, window.global_pooling),
    (image.ResizeOp, window.resampling),
    (reduce.SoftmaxLikeOp, others.softmax),
    (reduce.MeanOp, window.spatial_reduction),
    (reduce.MaxOp, window.spatial_reduction),
    (nn.LrnOp, others.lrn),
    (nn.LayerNormOp, others.layer_norm),
    (transform.ConcatenateOp, others.concatenate),
    (transform.TransposeOp, others.transpose),
    (elementwise.CastOp, others.convert),
    (transform.ReshapeOp, others.view),
    (transform.SqueezeOp, others.view),
    (transform.ExpandDimsOp, others.view),
    (qnn.LookupOp, lookup),
    (qnn.RequantizeOp, requantized),
)
"""Ops that become one `dnnl` op."""


class ConvertRelayToDnnl(RegionPass):
    """Converts the ops and composites of oneDNN's regions to `dnnl` ops, all of them row-major.

    ```mlir
    %1 = byoc.composite "dnnl.conv2d_bias_relu" from "nn.conv2d_nn.bias_add_nn.relu_"
        (%a = %x : …, %b = %w : …, %c = %bias : …) -> tensor<1x16x8x8xf32> { … }
    ```
    becomes
    ```mlir
    %1 = dnnl.convolution %x, %w, %bias {…, post_ops = [#dnnl.eltwise<relu>]} : …
    ```
    """

    name = "convert-relay-to-dnnl"

    def change(self, region: FuncOp) -> None:
        convert_region(region)


def convert_region(func: FuncOp) -> None:
    """Replaces the body of a region by `dnnl` ops.

    Raises:
        PassFailedException: the region contains an op that the backend's rules do not accept.
    """
    old = func.body.block
    new = Block(arg_types=old.arg_types)
    builder = Builder(new)
    for before, after in zip(old.args, new.args, strict=True):
        after.name_hint = before.name_hint
        builder.convert(before, after)
    for op in old.ops:
        builder.location = fused_location([op])
        _convert(builder, op)
    _erase_unused(new)
    old_region = func.body
    func.detach_region(old_region)
    func.add_region(Region(new))
    old_region.drop_all_references()


def _erase_unused(block: Block) -> None:
    """Erases unused ops, such as a sigmoid that became part of a swish."""
    for op in reversed(list(block.ops)):
        if op.results and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _convert(builder: Builder, op: Operation) -> None:
    if isinstance(op, ReturnOp):
        builder.block.add_op(ReturnOp(*_results(builder, op)))
    elif isinstance(op, ConstantOp):
        builder.convert(op.output, builder.add(op.clone()))
    elif isinstance(op, byoc.CompositeOp):
        _convert_composite(builder, op)
    elif isinstance(op, transform.SplitOp):
        others.split(builder, op)
    else:
        builder.written = tensor_type(op.results[0]).element_type
        builder.convert(op.results[0], _convert_group(builder, op.results[0], [op]))


def _convert_composite(builder: Builder, op: byoc.CompositeOp) -> None:
    for parameter, value in zip(op.body.block.args, op.inputs, strict=True):
        builder.bind(parameter, value)
    ops = list(op.ops())
    for inner in ops:
        if isinstance(inner, ConstantOp):
            builder.convert(inner.output, builder.add(inner.clone()))
        elif isinstance(inner, elementwise.CastOp) and _is_widening(inner):
            builder.bind(inner.output, inner.data)  # primitives widen what they read
    builder.location = fused_location([op, *ops])
    layer = read_recurrent_layer(builder.reader, op.yielded[0])
    if layer is not None:
        _convert_layer(builder, op, layer)
        return
    if len(op.outputs) != 1:
        raise PassFailedException(f"composite {op.composite_name}: expected one result")
    builder.written = tensor_type(op.outputs[0]).element_type
    builder.convert(op.outputs[0], _convert_expression(builder, _rounded(op.yielded[0]), ops))


def _is_widening(cast: elementwise.CastOp) -> bool:
    return cast.dtype == f32 and tensor_type(cast.data).element_type == bf16


def _rounded(value: SSAValue) -> SSAValue:
    """Returns the `f32` value that a primitive rounds to `bf16` when it writes it.

    Returns other values unchanged.
    """
    op = value.owner
    return op.data if isinstance(op, elementwise.CastOp) and op.dtype == bf16 else value


def _convert_layer(builder: Builder, op: byoc.CompositeOp, layer: RecurrentLayer) -> None:
    used = [position for position, output in enumerate(op.outputs) if output.uses]
    results = recurrent_layer(builder, layer, used)
    for output, result in zip(op.outputs, results, strict=True):
        if result is not None:
            builder.convert(output, result)


def _convert_expression(builder: Builder, value: SSAValue, ops: Sequence[Operation]) -> SSAValue:
    """Converts the ops of a composite to a `dnnl` value."""
    quantised = read_sum_with_residual(builder.reader, value)
    quantised = quantised or read_quantized(builder.reader, value)
    if quantised is not None:
        return quantized(builder, quantised)
    norm = read_layer_norm(builder.reader, value)
    if norm is not None:
        return others.layer_norm(builder, norm)
    moved = read_shuffle(builder.reader, value)
    if moved is not None:
        return others.shuffle(builder, moved)
    return _convert_group(builder, value, ops)


def _convert_group(builder: Builder, value: SSAValue, ops: Sequence[Operation]) -> SSAValue:
    """Converts ops that oneDNN runs as one primitive to a `dnnl` value."""
    chain = read_chain(builder.reader, value, ops)
    source = builder.reader.owner(chain.source)
    if source not in ops:
        return others.elementwise(builder, chain)
    return _convert_anchor(builder, source, chain)


def _convert_anchor(builder: Builder, op: Operation | None, chain: PostOpChain) -> SSAValue:
    for type_, convert in _WITH_POST_OPS:
        if isinstance(op, type_):
            return convert(builder, op, chain.steps)
    for type_, convert_alone in _ALONE:
        if isinstance(op, type_) and not chain.steps:
            return convert_alone(builder, op)
    name = op.name if op is not None else "a value from outside"
    raise PassFailedException(f"oneDNN has no primitive for {name} followed by {chain.steps}")


def _results(builder: Builder, op: ReturnOp) -> list[SSAValue]:
    """Returns the region's results, each in separate memory."""
    taken: set[SSAValue] = set()
    results: list[SSAValue] = []
    for operand in op.operands:
        value = builder.value(operand)
        root = builder.root(value)
        if root in taken or not builder.is_computed(root):
            value = builder.copy(value)
        value = builder.row_major(value)
        taken.add(root)
        results.append(value)
    return results
