"""Concatenations without copies, whose parts can be written directly to the result."""

from __future__ import annotations

import math

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf, Types
from byoc_mlir.backends.dnnl.primitives.shared_memory import (
    first_name,
    is_overwritten,
    shares_memory,
)
from byoc_mlir.dialects.relay.base import shape_of


def can_join(op: dnnl.ConcatOp, layout: LayoutOf) -> bool:
    """True if the parts of a concatenation can share the result's memory, in the given layouts.

    Each part must be contiguous, aligned, and computed in the region. No op may overwrite the
    part's memory, and no other concatenation may use the part.
    """
    if is_overwritten(op.output) or len(set(map(first_name, op.sources))) < len(op.sources):
        return False
    return all(_is_piece(op, part, layout) and _is_free(op, part) for part in op.sources)


def _is_piece(op: dnnl.ConcatOp, part: SSAValue, layout: LayoutOf) -> bool:
    size = Types(layout).of(part).byte_size
    return (
        layout(part) == layout(op.output)
        and layouts.is_piece(shape_of(part), layout(part), op.axis.value.data)
        and (part is op.sources[-1] or size % ARENA_ALIGNMENT == 0)
    )


def _is_free(op: dnnl.ConcatOp, part: SSAValue) -> bool:
    """True if this concatenation is the only op that determines the memory of a part."""
    first = first_name(part)
    if not isinstance(first.owner, dnnl.ExecutedOp | dnnl.JoinOp) or is_overwritten(part):
        return False
    is_same = math.prod(shape_of(first)) == math.prod(shape_of(part))
    return is_same and _askers(first) == {op}


def _askers(value: SSAValue) -> set[Operation]:
    """Returns the ops that require a value, or another value in its memory, to be in specific
    memory.
    """
    found: set[Operation] = set()
    for use in value.uses:
        user = use.operation
        if isinstance(user, dnnl.ConcatOp | dnnl.JoinOp | ReturnOp):
            found.add(user)
        elif shares_memory(user, value):
            found |= _askers(user.results[0])
    return found
