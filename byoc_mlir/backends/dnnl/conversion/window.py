"""Conversion of convolutions, deconvolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.chain import Step
from byoc_mlir.backends.dnnl.conversion.post_ops import post_ops, take_bias
from byoc_mlir.dialects.relay import pool, window
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.image import ResizeOp
from byoc_mlir.dialects.relay.qnn_window import QuantizedAvgPoolOp, QuantizedPoolOp
from byoc_mlir.dialects.relay.reduce import MaxOp, MeanOp


def convolution(builder: Builder, op: window.ConvOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.convolution` with the first bias as operand and all other steps as post-ops."""
    rank = len(shape_of(op.data))
    if _is_product(op):
        return _product(builder, op, steps)
    bias, rest = take_bias(builder, steps, axis=1, rank=rank)
    post = post_ops(builder, rest, rank)
    operands = [builder.value(op.data), builder.value(op.weight), *_given(bias), *post.operands]
    return builder.add(
        dnnl.ConvolutionOp(
            operands,
            strides=op.strides,
            padding=op.padding,
            dilation=op.dilation,
            groups=op.groups,
            post_ops=post.attributes,
            element=builder.element(op.data),
        )
    )


def _is_product(op: window.ConvOp) -> bool:
    """True if the convolution has one output position and one kernel tap, so that it equals a dense
    layer.
    """
    positions = (*shape_of(op.data)[2:], *shape_of(op.weight)[2:])
    return set(positions) == {1} and op.groups.value.data == 1 and not any(ints(op.padding))


def _product(builder: Builder, op: window.ConvOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.matmul`, for which oneDNN has fast code for any number of channels."""

    def flat(value: SSAValue) -> SSAValue:
        return builder.view(value, shape_of(value)[:2])

    rank = len(shape_of(op.data))
    bias, rest = take_bias(builder, steps, axis=1, rank=rank)
    post = post_ops(builder, rest, rank, flat)
    row = [] if bias is None else [builder.expanded(bias, 2)]
    operands = [flat(builder.value(op.data)), flat(builder.value(op.weight)), *row, *post.operands]
    element = builder.element(op.data)
    product = dnnl.MatmulOp(operands, transpose_b=True, post_ops=post.attributes, element=element)
    return builder.view(builder.add(product), shape_of(op.output))


def deconvolution(builder: Builder, op: window.ConvTransposeOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.deconvolution`; `output_padding` reduces the padding at the end."""
    rank = len(shape_of(op.data))
    bias, rest = take_bias(builder, steps, axis=1, rank=rank)
    post = post_ops(builder, rest, rank)
    padding, spatial = ints(op.padding), rank - 2
    ends = [
        end - extra for end, extra in zip(padding[spatial:], ints(op.output_padding), strict=True)
    ]
    operands = [builder.value(op.data), builder.value(op.weight), *_given(bias), *post.operands]
    return builder.add(
        dnnl.DeconvolutionOp(
            operands,
            strides=op.strides,
            padding=[*padding[:spatial], *ends],
            dilation=op.dilation,
            groups=op.groups,
            post_ops=post.attributes,
            element=builder.element(op.data),
        )
    )


def pooling(builder: Builder, op: pool.PoolOp) -> SSAValue:
    """Builds `dnnl.pooling`; if ONNX rounds the output size up, the end padding grows."""
    algorithm = "max"
    if isinstance(op, pool.AvgPoolOp | QuantizedAvgPoolOp):
        is_whole = bool(op.count_include_pad.value.data)
        algorithm = "avg_include_padding" if is_whole else "avg_exclude_padding"
    source, result = shape_of(op.data), shape_of(op.output)
    strides, padding, dilation = ints(op.strides), ints(op.padding), ints(op.dilation)
    kernel, spatial = ints(op.pool_size), len(source) - 2
    ends = [
        max(
            padding[spatial + axis],
            (result[axis + 2] - 1) * strides[axis]
            + (kernel[axis] - 1) * dilation[axis]
            + 1
            - source[axis + 2]
            - padding[axis],
        )
        for axis in range(spatial)
    ]
    return builder.add(
        dnnl.PoolingOp(
            [builder.value(op.data)],
            algorithm=algorithm,
            kernel=list(kernel),
            strides=list(strides),
            padding=[*padding[:spatial], *ends],
            dilation=list(dilation),
            post_ops=_requantised(builder, op),
        )
    )


def _requantised(builder: Builder, op: pool.PoolOp | pool.GlobalPoolOp) -> ArrayAttr[Attribute]:
    """Returns the post-ops of a pool: for an average of quantised values, its requantisation."""
    if not isinstance(op, QuantizedPoolOp):
        return ArrayAttr([])
    known = [builder.reader.array(value) for value in op.operands[1:]]
    before, zero, after, result_zero = (float(one) for one in known if one is not None)
    scale = before / after
    change = dnnl.EltwiseAttr.of("linear", scale, result_zero - zero * scale)
    is_same = (scale, result_zero) == (1, zero)
    return ArrayAttr([] if is_same else [change])


def global_pooling(builder: Builder, op: pool.GlobalPoolOp) -> SSAValue:
    """Builds `dnnl.pooling` with one window."""
    return _whole_pooling(builder, op.data, "max" in op.name, _requantised(builder, op))


def resampling(builder: Builder, op: ResizeOp) -> SSAValue:
    """Builds `dnnl.resampling`."""
    size = list(shape_of(op.output)[2:])
    return builder.add(dnnl.ResamplingOp(builder.value(op.data), algorithm=op.method, size=size))


def spatial_reduction(builder: Builder, op: MeanOp | MaxOp) -> SSAValue:
    """Builds `dnnl.pooling` with one window for a mean or maximum over all spatial dimensions."""
    pooled = _whole_pooling(builder, op.data, isinstance(op, MaxOp), ArrayAttr([]))
    return builder.view(pooled, shape_of(op.output))


def _whole_pooling(
    builder: Builder, data: SSAValue, is_maximum: bool, steps: ArrayAttr[Attribute]
) -> SSAValue:
    sizes = list(shape_of(data)[2:])
    return builder.add(
        dnnl.PoolingOp(
            [builder.value(data)],
            algorithm="max" if is_maximum else "avg_exclude_padding",
            kernel=sizes,
            strides=[1] * len(sizes),
            padding=[0] * (2 * len(sizes)),
            dilation=[1] * len(sizes),
            post_ops=steps,
        )
    )


def _given(bias: SSAValue | None) -> list[SSAValue]:
    return [] if bias is None else [bias]
