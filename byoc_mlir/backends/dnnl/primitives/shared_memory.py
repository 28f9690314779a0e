"""Values of a region that share memory."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library.calls import element_bytes
from byoc_mlir.backends.dnnl.primitives.descriptions import Types, data_type_of

NAMES = (dnnl.ViewOp, dnnl.PermuteOp, dnnl.SliceOp)
"""Ops whose results are views of their operand's memory."""


def root(value: SSAValue) -> SSAValue:
    """Returns the value that owns a value's memory, through views, in-place ops and joins."""
    first = first_name(value)
    join = _join_of(first)
    return first if join is None else root(join.output)


def is_in_place(op: Operation) -> bool:
    """True if an op's result is in the memory of one of its operands."""
    return _shared_operand(op) is not None


def shares_memory(op: Operation, operand: SSAValue) -> bool:
    """True if an op's result is in the memory of the given operand."""
    return _shared_operand(op) is operand


def first_name(value: SSAValue) -> SSAValue:
    """Returns the first value that is written to the memory of a value."""
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        value = source
    return value


def _join_of(value: SSAValue) -> dnnl.JoinOp | None:
    """Returns the join that has a value, or a later value in its memory, as a source."""
    for use in value.uses:
        if isinstance(use.operation, dnnl.JoinOp):
            return use.operation
        if shares_memory(use.operation, value):
            found = _join_of(use.operation.results[0])
            if found is not None:
                return found
    return None


def is_overwritten(value: SSAValue) -> bool:
    """True if an op overwrites the memory of a value, perhaps under the name of a view."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, NAMES):
            if is_overwritten(op.results[0]):
                return True
        elif shares_memory(op, value):
            return True
    return False


def _shared_operand(op: Operation) -> SSAValue | None:
    if isinstance(op, (dnnl.ActivationOp, *NAMES)):
        return op.source
    if isinstance(op, dnnl.PostOpsOp):
        readers = (one for one in op.post_ops if not isinstance(one, dnnl.EltwiseAttr))
        for attribute, operand in zip(readers, op.post_op_operands, strict=True):
            if isinstance(attribute, dnnl.SumAttr):
                return operand
    return None


def offset_in_root(value: SSAValue) -> int:
    """Returns the byte offset of a value in the value that owns its memory."""
    total = 0
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        if isinstance(value.owner, dnnl.SliceOp):
            total += value.owner.offset * element_bytes(data_type_of(value))
        value = source
    join = _join_of(value)
    if join is None:
        return total
    firsts = [first_name(source) for source in join.sources]
    before = join.sources[: firsts.index(value)]
    return total + sum(map(byte_size, before)) + offset_in_root(join.output)


def byte_size(value: SSAValue) -> int:
    """Returns the bytes of a value in its layout."""
    return Types(dnnl.layout_of).of(value).byte_size
