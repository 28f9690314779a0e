"""Dense layers and matmuls."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.chain import Step
from byoc_mlir.backends.dnnl.conversion.post_ops import post_ops, take_bias
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.nn import DenseOp
from byoc_mlir.dialects.relay.nn import MatmulOp as RelayMatmulOp


def rows(shape: Sequence[int]) -> tuple[int, int]:
    """Returns the shape of a batch of row vectors, regarded as one matrix.

    All leading dimensions are merged.
    """
    return math.prod(shape[:-1]), shape[-1]


def dense(builder: Builder, op: DenseOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.matmul` of the rows of the data, of any rank, and the transposed weights."""
    return _rows_times_matrix(builder, op.data, op.weight, op.output, steps, transpose_b=True)


def _as_rows(builder: Builder, operand: SSAValue) -> SSAValue:
    return builder.view(operand, rows(shape_of(operand)))


def matmul(builder: Builder, op: RelayMatmulOp, steps: Sequence[Step]) -> SSAValue:
    """Builds `dnnl.matmul`; a batch of matrices times one matrix becomes one matmul of all rows."""
    if is_rows_times_matrix(op):
        transpose_b = bool(op.transpose_b.value.data)
        return _rows_times_matrix(builder, op.a, op.b, op.output, steps, transpose_b=transpose_b)
    shape = shape_of(op.output)
    rank = len(shape)
    bias, rest = take_bias(builder, steps, axis=rank - 1, rank=rank)
    post = post_ops(builder, rest, rank)
    operands = [
        builder.expanded(builder.value(op.a), rank),
        builder.expanded(builder.value(op.b), rank),
        *([builder.expanded(bias, rank)] if bias else []),
        *post.operands,
    ]
    return builder.add(
        dnnl.MatmulOp(
            operands,
            transpose_a=op.transpose_a,
            transpose_b=op.transpose_b,
            post_ops=post.attributes,
            element=builder.element(op.a),
        )
    )


def is_rows_times_matrix(op: RelayMatmulOp) -> bool:
    """True if the op multiplies all rows of a batch by one matrix."""
    return len(shape_of(op.b)) == 2 and not op.transpose_a.value.data


def _rows_times_matrix(
    builder: Builder,
    rows_: SSAValue,
    matrix: SSAValue,
    output: SSAValue,
    steps: Sequence[Step],
    *,
    transpose_b: bool,
) -> SSAValue:
    shape = shape_of(output)
    rank = len(shape)
    bias, rest = take_bias(builder, steps, axis=rank - 1, rank=rank)
    post = post_ops(builder, rest, rank, lambda operand: _as_rows(builder, operand))
    operands = [
        builder.view(builder.value(rows_), rows(shape_of(rows_))),
        builder.value(matrix),
        *([builder.expanded(bias, 2)] if bias else []),
        *post.operands,
    ]
    product = dnnl.MatmulOp(
        operands,
        transpose_b=transpose_b,
        post_ops=post.attributes,
        element=builder.element(rows_),
    )
    return builder.view(builder.add(product), shape)
