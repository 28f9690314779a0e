"""Which values of a region share memory."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.dialect import (
    ActivationOp,
    EltwiseAttr,
    PermuteOp,
    SliceOp,
    SumAttr,
    ViewOp,
)
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.backends.dnnl.library.calls import element_bytes
from byoc_mlir.backends.dnnl.primitives.descriptions import data_type_of

_NAMES = ViewOp | PermuteOp | SliceOp
"""Ops whose results are other names for the memory of their operand."""


def root(value: SSAValue) -> SSAValue:
    """The value whose memory this one shares: through views, and what is done in place."""
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        value = source
    return value


def is_overwritten(value: SSAValue) -> bool:
    """Whether an op writes its result to the memory of a value, or of another name for it."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, _NAMES):
            if is_overwritten(op.results[0]):
                return True
        elif _shared_operand(op) is value:
            return True
    return False


def _shared_operand(op: Operation) -> SSAValue | None:
    if isinstance(op, ActivationOp | _NAMES):
        return op.source
    if isinstance(op, PostOpsOp):
        readers = (one for one in op.post_ops if not isinstance(one, EltwiseAttr))
        for attribute, operand in zip(readers, op.post_op_operands, strict=True):
            if isinstance(attribute, SumAttr):
                return operand
    return None


def offset_in_root(value: SSAValue) -> int:
    """The bytes by which a value begins after the one whose memory it shares."""
    total = 0
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        if isinstance(value.owner, SliceOp):
            total += value.owner.offset * element_bytes(data_type_of(value))
        value = source
    return total
