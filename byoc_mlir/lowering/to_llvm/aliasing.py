"""Alias analysis: memrefs of a function that may reach the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from byoc_mlir.abi import MAY_ALIAS
from byoc_mlir.dialects import dynamic_buffers
from byoc_mlir.lowering.to_llvm.index_math import bound
from byoc_mlir.lowering.to_llvm.types import buffer_bytes

_SAME_MEMORY = (
    memref.CastOp,
    memref.ReinterpretCastOp,
    dynamic_buffers.ViewOp,
)
_OWN_MEMORY = (memref.AllocaOp, memref.AllocOp, memref.GetGlobalOp)


@dataclass(frozen=True)
class Extent:
    """Bytes that a memref can reach: a range of a buffer, or the whole buffer if the range is
    unknown.
    """

    buffer: SSAValue | Attribute | None
    """Buffer, or None if it is unknown; a global is identified by its symbol."""
    start: int | None = None
    size: int | None = None

    def may_overlap(self, other: Extent) -> bool:
        """True if the two extents may have a byte in common."""
        if self.buffer is None or other.buffer is None:
            return True
        if self.buffer != other.buffer:
            return False
        if self.start is None or self.size is None or other.start is None or other.size is None:
            return True
        return self.start < other.start + other.size and other.start < self.start + self.size


def extent_of(value: SSAValue) -> Extent:
    """Returns the extent of a memref, found by following views and casts to the buffer.

    Different arguments of a function are different buffers, unless marked `byoc.may_alias`.
    """
    owner = value.owner
    if isinstance(value, BlockArgument):
        return Extent(value if _is_own_argument(value) else None)
    assert isinstance(owner, Operation)
    match owner:
        case memref.GetGlobalOp():
            return Extent(owner.name_)
        case _ if isinstance(owner, _OWN_MEMORY):
            return Extent(value)
        case dynamic_buffers.PlaceOp():
            return _extent_of_place(owner)
        case _ if isinstance(owner, _SAME_MEMORY):
            return extent_of(owner.operands[0])
        case _:
            return Extent(None)


def _extent_of_place(op: dynamic_buffers.PlaceOp) -> Extent:
    source, start, type_ = extent_of(op.source), bound(op.offset), op.result.type
    if not type_.has_static_shape():
        return Extent(None)
    if source.buffer is not op.source or not isinstance(start, int):
        return source
    return Extent(source.buffer, start, buffer_bytes(type_))


def _is_own_argument(value: BlockArgument) -> bool:
    """True if a value is an argument of a function, and no other argument reaches its memory."""
    function = value.owner.parent_op()
    if not isinstance(function, func.FuncOp) or value.owner is not function.body.first_block:
        return False
    if function.arg_attrs is None:
        return True
    return not isinstance(function.arg_attrs.data[value.index].data.get(MAY_ALIAS), UnitAttr)


def aliased(values: Sequence[SSAValue]) -> Sequence[bool]:
    """Returns, for each memref, True if another memref may reach the same memory."""
    extents = [extent_of(value) for value in values]
    return [
        any(extent.may_overlap(other) for other in extents[:index] + extents[index + 1 :])
        for index, extent in enumerate(extents)
    ]
