"""Helpers for the passes over `relay`: replacing ops, and reading constants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, WeightAttr
from byoc_mlir.dialects.relay.elementwise import ClipOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.tensors import Array


def place_after(value: SSAValue) -> InsertPoint:
    """Returns the first insertion point after a value's definition."""
    owner = value.owner
    return InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)


def constant_array(value: SSAValue) -> Array | None:
    """Returns a constant's content; `None` for other values and weights that are not loaded."""
    op = value.owner
    if not isinstance(op, ConstantOp):
        return None
    if isinstance(op.value, WeightAttr) and op.value.data.array is None:
        return None
    return op.array


def clip_bounds(op: ClipOp | ReluOp) -> tuple[float, float]:
    """Returns the bounds of a clip or relu."""
    if isinstance(op, ClipOp):
        return op.a_min.value.data, op.a_max.value.data
    return 0.0, math.inf


def constant_name(op: Operation, fallback: str) -> str:
    """Returns a name for a constant computed from operands of `op`: the name of its first
    weight.
    """
    for operand in op.operands:
        if isinstance(operand.owner, ConstantOp) and isinstance(operand.owner.value, WeightAttr):
            return operand.owner.value.data.name
    return fallback


def replace_op(op: Operation, new_ops: Sequence[Operation], values: Sequence[SSAValue]) -> None:
    """Replaces `op` by `new_ops`, and its results by `values`.

    Values keep their name hints. The caller sets locations, since it knows which ops were merged.
    """
    Rewriter.insert_op(new_ops, InsertPoint.before(op))
    Rewriter.replace_op(op, (), values)


def erase_dead_ops(block: Block) -> None:
    """Removes the unused `relay` ops of a block, then the ops that only these ops used."""
    for op in reversed(list(block.ops)):
        if isinstance(op, RelayOp):
            erase_if_dead(op)


def erase_if_dead(op: RelayOp) -> None:
    """Removes an op whose results are unused."""
    if isinstance(op, ConstantOp):
        op.erase_if_unused()
    elif op.parent is not None and all(result.first_use is None for result in op.results):
        op.parent.erase_op(op)
