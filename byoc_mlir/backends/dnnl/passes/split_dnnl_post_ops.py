"""The pass `split-dnnl-post-ops`: splits off post-ops for which oneDNN has no fast code."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.library.accuracy import is_inaccurate
from byoc_mlir.backends.dnnl.partition.reference_code import only_reference
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass, replace_located
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.onednn.engine import openmp_threads


class SplitDnnlPostOps(RegionPass):
    """Splits off post-ops of primitives that would run as reference code, and are faster without
    them.

    The pass also splits off biases of deconvolutions.

    ```mlir
    %1 = dnnl.matmul %a, %b, %mask {post_ops = [#dnnl.binary<add>]} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.matmul %a, %b : …
    %1 = dnnl.binary %0, %mask {algorithm = "add"} : …
    ```
    """

    name = "split-dnnl-post-ops"

    def change(self, region: FuncOp) -> None:
        pending = [op for op in region.body.block.ops if isinstance(op, dnnl.PostOpsOp)]
        with openmp_threads(1):
            while pending:
                op = pending.pop()
                kept = _kept(op)
                if kept < len(op.post_ops):
                    pending.append(_split(op, kept))
                elif isinstance(op, dnnl.DeconvolutionOp) and op.bias is not None:
                    _split_bias(op, op.bias)


def _kept(op: dnnl.PostOpsOp) -> int:
    """Returns the maximum number of leading post-ops for which oneDNN has fast code.

    Returns the number of all post-ops if oneDNN has no fast code for the op. An inaccurate post-op
    must be the last one, so that a built-in kernel can compute it.
    """
    for count, post_op in enumerate(op.post_ops.data[:-1], 1):
        if isinstance(post_op, dnnl.EltwiseAttr) and is_inaccurate(
            post_op.algorithm.data, op.output
        ):
            return count
    if is_ours(op) or only_reference(op) is None:
        return len(op.post_ops)
    for count in reversed(range(len(op.post_ops))):
        shorter = _with_post_ops(op, count)
        is_fast = only_reference(shorter) is None
        shorter.erase()
        if is_fast:
            return count
    return len(op.post_ops)


def _split(op: dnnl.PostOpsOp, count: int) -> dnnl.PostOpsOp:
    """Keeps the first `count` post-ops of an op; returns a new op that computes the remaining
    ones.
    """
    shorter = _with_post_ops(op, count)
    operands = op.post_op_operands[shorter.post_op_count :]
    first, *others = op.post_ops.data[count:]
    rest = _alone(shorter.output, first, operands, ArrayAttr(others))
    replace_located(op, shorter, rest)
    return rest


def _alone(
    source: SSAValue, post_op: Attribute, operands: Sequence[SSAValue], others: ArrayAttr[Attribute]
) -> dnnl.PostOpsOp:
    """Returns `post_op` as a primitive on `source`, with `others` as its post-ops."""
    if isinstance(post_op, dnnl.EltwiseAttr):
        return dnnl.EltwiseOp(
            [source, *operands],
            algorithm=post_op.algorithm,
            alpha=post_op.alpha,
            beta=post_op.beta,
            post_ops=others,
        )
    assert isinstance(post_op, dnnl.BinaryAttr)
    return dnnl.BinaryOp([source, *operands], algorithm=post_op.algorithm, post_ops=others)


def _split_bias(op: dnnl.DeconvolutionOp, bias: SSAValue) -> None:
    """Splits off the bias of a deconvolution.

    oneDNN adds the bias after a deconvolution; in NHWC, it does so one element at a time.

    ```mlir
    %1 = dnnl.deconvolution %x, %w, %b {post_ops = [#dnnl.eltwise<relu, …>]} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.deconvolution %x, %w : …
    %c = dnnl.view %b : (tensor<8xf32>) -> tensor<1x8x1x1xf32>
    %1 = dnnl.binary %0, %c {algorithm = "add", post_ops = [#dnnl.eltwise<relu, …>]} : …
    ```
    """
    shape = shape_of(op.output)
    of_channels = [1, shape[1], *(1 for _ in shape[2:])]
    view = dnnl.ViewOp(bias, result_types=[TensorType(f32, of_channels)])
    without = dnnl.DeconvolutionOp.create(
        operands=op.primary[:2],
        result_types=[op.output.type],
        properties={**op.properties, "post_ops": ArrayAttr(())},
    )
    binary = dnnl.BinaryOp(
        [without.output, view.output, *op.post_op_operands],
        algorithm="add",
        post_ops=op.post_ops,
    )
    replace_located(op, view, without, binary)


def _with_post_ops(op: dnnl.PostOpsOp, count: int) -> dnnl.PostOpsOp:
    """Returns the op with its first `count` post-ops only."""
    post_ops = ArrayAttr(op.post_ops.data[:count])
    reading = sum(not isinstance(one, dnnl.EltwiseAttr) for one in post_ops)
    return type(op).create(
        operands=[*op.primary, *op.post_op_operands[:reading]],
        result_types=[op.output.type],
        properties={**op.properties, "post_ops": post_ops},
    )
