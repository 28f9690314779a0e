"""What the linear passes over `relay` share: what to walk, how to replace, what is constant."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, WeightAttr
from byoc_mlir.tensors import Array


def place_after(value: SSAValue) -> InsertPoint:
    """The first place where a value is known."""
    owner = value.owner
    return InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)


def constant_array(value: SSAValue) -> Array | None:
    """The content of a constant, `None` for other values and where the bytes are not loaded."""
    op = value.owner
    if not isinstance(op, ConstantOp):
        return None
    if isinstance(op.value, WeightAttr) and op.value.data.array is None:
        return None
    return op.array


def constant_name(op: Operation, fallback: str) -> str:
    """The name for a constant computed from `op`'s operands: the first weight's among them."""
    for operand in op.operands:
        if isinstance(operand.owner, ConstantOp) and isinstance(operand.owner.value, WeightAttr):
            return operand.owner.value.data.name
    return fallback


def replace_op(op: Operation, new_ops: Sequence[Operation], values: Sequence[SSAValue]) -> None:
    """Puts `new_ops` in the place of `op` and `values` in the place of its results.

    Name hints carry over; locations are the caller's to set, since it knows what was merged.
    """
    Rewriter.insert_op(new_ops, InsertPoint.before(op))
    Rewriter.replace_op(op, (), values)


def erase_dead_ops(block: Block) -> None:
    """Removes `relay` ops that nothing uses, and what only they used."""
    for op in reversed(list(block.ops)):
        if isinstance(op, RelayOp):
            erase_if_dead(op)


def erase_if_dead(op: RelayOp) -> None:
    """Removes an op that nothing uses."""
    if isinstance(op, ConstantOp):
        op.erase_if_unused()
    elif op.parent is not None and all(result.first_use is None for result in op.results):
        op.parent.erase_op(op)
