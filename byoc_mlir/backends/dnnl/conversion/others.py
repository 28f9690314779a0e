"""Conversion of normalisations, concatenation, shape changes and single element-wise ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.chain import PerChannel, PostOpChain, Step
from byoc_mlir.backends.dnnl.conversion.post_ops import post_ops
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.partition.activations import Activation
from byoc_mlir.backends.dnnl.partition.layer_norm import LayerNorm
from byoc_mlir.backends.dnnl.partition.shuffles import ChannelShuffle, PixelShuffle
from byoc_mlir.dialects.relay import RelayOp, nn, reduce, transform
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.elementwise import CastOp


def softmax(builder: Builder, op: reduce.SoftmaxLikeOp) -> SSAValue:
    """Builds `dnnl.softmax`, for softmax or log-softmax."""
    algorithm = "log" if isinstance(op, reduce.LogSoftmaxOp) else "accurate"
    return builder.add(
        dnnl.SoftmaxOp(builder.value(op.data), algorithm=algorithm, axis=op.positive_axis)
    )


def lrn(builder: Builder, op: nn.LrnOp) -> SSAValue:
    """Builds `dnnl.lrn`."""
    return builder.add(
        dnnl.LrnOp(builder.value(op.data), size=op.size, alpha=op.alpha, beta=op.beta, k=op.bias)
    )


def batch_norm(builder: Builder, op: nn.BatchNormOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.batch_normalization` with the op's statistics.

    The only step that may follow is a relu.
    """
    assert not steps or steps == (Activation("relu", op.output),)
    operands = (op.data, op.moving_mean, op.moving_var, op.gamma, op.beta)
    values = [builder.value(operand) for operand in operands]
    return builder.add(dnnl.BatchNormalizationOp(*values, epsilon=op.epsilon, relu=bool(steps)))


def layer_norm(builder: Builder, norm: nn.LayerNormOp | LayerNorm) -> SSAValue:
    """Builds `dnnl.layer_normalization`, also for the decomposed form that exporters write."""
    values = [builder.value(value) for value in (norm.data, norm.gamma, norm.beta)]
    return builder.add(dnnl.LayerNormalizationOp(*values, epsilon=norm.epsilon))


def shuffle(builder: Builder, moved: ChannelShuffle | PixelShuffle) -> SSAValue:
    """Builds `dnnl.pixel_shuffle` or `dnnl.shuffle`.

    The attribute of `dnnl.shuffle` is the size of the groups; ONNX models have the number of
    groups.
    """
    data = builder.value(moved.data)
    if isinstance(moved, PixelShuffle):
        return builder.add(dnnl.PixelShuffleOp(data, block=list(moved.block)))
    size = shape_of(moved.data)[1] // moved.groups
    return builder.add(dnnl.ShuffleOp(data, axis=1, group_size=size))


def concatenate(builder: Builder, op: transform.ConcatenateOp) -> SSAValue:
    """Builds `dnnl.concat`."""
    return builder.add(
        dnnl.ConcatOp([builder.value(value) for value in op.data], axis=op.positive_axis)
    )


def view(builder: Builder, op: RelayOp) -> SSAValue:
    """Builds `dnnl.view` for reshape, squeeze and expand_dims."""
    return builder.view(builder.value(op.operands[0]), shape_of(op.results[0]))


def convert(builder: Builder, op: CastOp) -> SSAValue:
    """Builds `dnnl.convert`."""
    return builder.add(dnnl.ConvertOp(builder.value(op.data), element=op.dtype))


def transpose(builder: Builder, op: transform.TransposeOp) -> SSAValue:
    """Builds `dnnl.permute`, a view that matmuls read and write without a copy.

    A permuted tensor is copied before it is permuted again, unless that makes it row-major.
    """
    value, axes = builder.value(op.data), ints(op.axes)
    if layouts.permuted(dnnl.layout_of(value), axes) != layouts.plain(len(axes)):
        value = builder.row_major(value)
    return builder.add(dnnl.PermuteOp.of(value, axes))


def split(builder: Builder, op: transform.SplitOp) -> None:
    """Builds a `dnnl.slice` for each part."""
    source, axis, start = builder.value(op.data), op.positive_axis, 0
    for part in op.outputs:
        sizes = shape_of(part)
        begin = [start if dimension == axis else 0 for dimension in range(len(sizes))]
        builder.convert(part, builder.slice(source, begin, sizes))
        start += sizes[axis]


def elementwise(builder: Builder, chain: PostOpChain) -> SSAValue:
    """Builds a chain without an anchor op: its first step is the primitive, further steps are
    post-ops.
    """
    first, *rest = chain.steps
    source, rank = builder.value(chain.source), len(shape_of(chain.source))
    post = post_ops(builder, rest, rank)
    if isinstance(first, Activation):
        return builder.add(
            dnnl.EltwiseOp(
                [source, *post.operands],
                algorithm=first.algorithm,
                alpha=first.alpha,
                beta=first.beta,
                post_ops=post.attributes,
            )
        )
    if isinstance(first, PerChannel):
        other, algorithm = builder.channels(builder.value(first.bias), rank, first.axis), "add"
    else:
        other, algorithm = builder.expanded(builder.value(first.other), rank), first.algorithm
    return builder.add(
        dnnl.BinaryOp(
            [source, other, *post.operands], algorithm=algorithm, post_ops=post.attributes
        )
    )
