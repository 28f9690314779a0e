"""Post-ops that oneDNN has no fast code for, as primitives of their own."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.dialect import (
    BinaryAttr,
    BinaryOp,
    DeconvolutionOp,
    InnerProductOp,
    MatmulOp,
    SumAttr,
    ViewOp,
)
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.backends.dnnl.primitives import primitive
from byoc_mlir.dialects.relay.base import shape_of


def split_post_ops(func: FuncOp) -> None:
    """Takes binary post-ops off products that run as reference code with them, and faster without;
    and biases off deconvolutions.

    ```mlir
    %1 = dnnl.matmul %a, %b, %mask {post_ops = [#dnnl.binary<add>]} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.matmul %a, %b : …
    %1 = dnnl.binary %0, %mask {algorithm = "add"} : …
    ```
    """
    for op in list(func.body.block.ops):
        if isinstance(op, MatmulOp | InnerProductOp) and _is_slow(op):
            _split(op)
        elif isinstance(op, DeconvolutionOp) and op.bias is not None and not _has_sum(op):
            _split_bias(op, op.bias)


def _is_slow(op: PostOpsOp) -> bool:
    described = primitive(op)
    found = api().find(described.call) if described is not None else None
    return found is None or found.implementation.startswith("ref")


def _split(op: PostOpsOp) -> None:
    post_ops = list(op.post_ops)
    positions = [i for i, one in enumerate(post_ops) if isinstance(one, BinaryAttr)]
    if not positions:
        return
    first = positions[0]
    attribute, others = post_ops[first], post_ops[first + 1 :]
    assert isinstance(attribute, BinaryAttr)
    operand, *rest = op.post_op_operands
    shorter = _with_post_ops(op, post_ops[:first])
    binary = BinaryOp(
        [shorter.result, operand, *rest],
        algorithm=attribute.algorithm,
        post_ops=ArrayAttr(others),
    )
    for new in (shorter, binary):
        new.location = op.location
    Rewriter.insert_op((shorter, binary), InsertPoint.before(op))
    op.result.replace_all_uses_with(binary.output)
    Rewriter.erase_op(op)


def _has_sum(op: PostOpsOp) -> bool:
    return any(isinstance(one, SumAttr) for one in op.post_ops)


def _split_bias(op: DeconvolutionOp, bias: SSAValue) -> None:
    """oneDNN adds the bias behind a deconvolution, in channels last one number at a time.

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
    view = ViewOp(bias, result_types=[TensorType(f32, of_channels)])
    without = DeconvolutionOp.create(
        operands=op.primary[:2],
        result_types=[op.output.type],
        properties={**op.properties, "post_ops": ArrayAttr(())},
    )
    binary = BinaryOp(
        [without.output, view.output, *op.post_op_operands],
        algorithm="add",
        post_ops=op.post_ops,
    )
    for new in (view, without, binary):
        new.location = op.location
    Rewriter.insert_op((view, without, binary), InsertPoint.before(op))
    op.output.replace_all_uses_with(binary.output)
    Rewriter.erase_op(op)


def _with_post_ops(op: PostOpsOp, post_ops: list[Attribute]) -> PostOpsOp:
    return type(op).create(
        operands=op.primary,
        result_types=[op.result.type],
        properties={**op.properties, "post_ops": ArrayAttr(post_ops)},
    )
