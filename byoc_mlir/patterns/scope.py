"""Ops that may be part of a match."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import ConstantLike, IsTerminator, NoMemoryEffect, is_side_effect_free

from byoc_mlir.dialects.relay.control import ControlOp


def is_movable(op: Operation) -> bool:
    """True if an op may be moved into a composite or a region, because it only computes its
    results.

    False for constants, terminators, control flow, ops with regions or side effects, `byoc` ops and
    ops that are not registered.
    """
    if op.regions or op.parent is None or isinstance(op, UnregisteredOp):
        return False
    return _computes(type(op)) and (op.has_trait(NoMemoryEffect) or is_side_effect_free(op))


@cache
def _computes(kind: type[Operation]) -> bool:
    if kind.has_trait(ConstantLike) or kind.has_trait(IsTerminator):
        return False
    return not (issubclass(kind, ControlOp) or kind.name.startswith("byoc."))


@dataclass(frozen=True)
class Scope:
    """Ops of a block that no earlier match contains."""

    block: Block | None
    taken: Container[Operation] = field(default_factory=frozenset[Operation])

    def refuse(self, op: Operation) -> str | None:
        """Returns why the op cannot be part of a match; `None` if it can."""
        if op.parent is not self.block:
            return "is outside of the block"
        if op in self.taken:
            return "belongs to another composite already"
        if not is_movable(op):
            return "has side effects or regions, or is no computation"
        return None


def outside_use(value: SSAValue, ops: Container[Operation]) -> Operation | None:
    """Returns a user of `value` that is not in `ops`; `None` if there is none."""
    for use in value.uses:
        if use.operation not in ops:
            return use.operation
    return None
