"""Matmuls as batches of GEMMs on row-major matrices, as libraries compute them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import Operation

from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.nn import BiasAddOp, DenseOp, MatmulOp


@dataclass(frozen=True)
class Gemm:
    """A batch of `count` matmuls `[rows, depth] · [depth, units]` of row-major matrices, contiguous
    in memory.

    An operand that all of them share is stored once.
    """

    count: int
    rows: int
    units: int
    depth: int
    transposes: tuple[bool, bool]
    """Flags of operands A and B that are stored with their dimensions swapped."""
    shares: tuple[bool, bool]
    """Flags of operands A and B that all matmuls of the batch share."""


def gemm_of(op: DenseOp | MatmulOp) -> Gemm:
    """Returns the batch of a matmul that `gemm_refused` accepts."""
    *batch, rows, units = (1, 1, *shape_of(op.output))
    if isinstance(op, DenseOp):
        depth = shape_of(op.weight)[1]
        return Gemm(1, math.prod(batch) * rows, units, depth, (False, True), (False, False))
    transposes = (bool(op.transpose_a.value.data), bool(op.transpose_b.value.data))
    depth = shape_of(op.a)[-2 if transposes[0] else -1]
    count = math.prod(batch)
    matrices = [math.prod(shape_of(value)[:-2]) for value in op.operands]
    if matrices[1] == 1 and not transposes[0]:  # rows of all the matrices follow each other
        return Gemm(1, count * rows, units, depth, transposes, (False, False))
    shares = (matrices[0] < count, matrices[1] < count)
    return Gemm(count, rows, units, depth, transposes, shares)


def gemm_refused(op: Operation) -> str | None:
    """Accepts matmuls whose batches are of equal length or one matrix long."""
    if 0 in (size for value in (*op.operands, *op.results) for size in shape_of(value)):
        return "a tensor is empty"
    if isinstance(op, MatmulOp):
        stacks = math.prod(shape_of(op.output)[:-2])
        for value in op.operands:
            if math.prod(shape_of(value)[:-2]) not in (1, stacks):
                return f"{value.type} would have to be broadcast in some of its dimensions"
    return None


def bias_refused(op: BiasAddOp) -> str | None:
    """Accepts a bias of the last axis, which are the units of a matmul."""
    if op.positive_axis != len(shape_of(op.data)) - 1:
        return "only a bias of the last axis is supported"
    return None
