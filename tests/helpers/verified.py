"""Verification of IR as in xDSL, in a fraction of the time."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation
from xdsl.ir.core import ErasedSSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import HasParent, IsTerminator, SymbolOpInterface, SymbolUserOpInterface

_Types: TypeAlias = tuple[Attribute, ...]
_Named: TypeAlias = tuple[tuple[str, Attribute], ...]
_Kind: TypeAlias = tuple[type[Operation], _Types, _Types, _Named, _Named]

_ELSEWHERE = (HasParent, IsTerminator, SymbolOpInterface, SymbolUserOpInterface)
"""Traits whose verifiers look at other ops."""

_DIALECTS = ("arith", "llvm", "math", "memref", "vector")
"""Dialects whose ops occur by thousands and are verified independently of their context."""

_verified: set[_Kind] = set()
"""Kinds of ops that this process has verified."""


def verify_module(op: Operation) -> None:
    """Verifies an op and all ops in it.

    Among ops of one class with the same types and attributes, only one is verified in a process, if
    nothing else affects the verification. Code for the host has thousands of ops, but only some
    hundred such kinds.

    Raises:
        VerifyException: an op violates its definition.
        ValueError: an op does not know its parent, or uses a value that was erased.
    """
    for region in op.regions:
        for block in region.blocks:
            if block.parent is not region:
                raise ValueError("a block does not know its region")
            _verify_block(block)
    kind = _kind(op)
    if kind in _verified:
        return
    op.verify(verify_nested_ops=False)
    if kind is not None:
        _verified.add(kind)


def _verify_block(block: Block) -> None:
    if block.is_empty:
        block.verify()
    for op in block.ops:
        if op.parent is not block:
            raise ValueError(f"a {op.name} does not know its block")
        verify_module(op)


def _kind(op: Operation) -> _Kind | None:
    """Returns the key of everything that an op's verification depends on; `None` if its context
    matters, too.
    """
    if op.next_op is None or op.regions or op.successors or not _stands_alone(type(op)):
        return None
    operands = tuple(op.operands)
    if any(isinstance(operand, ErasedSSAValue) for operand in operands):
        return None
    return (
        type(op),
        tuple(operand.type for operand in operands),
        tuple(op.result_types),
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
    )


@cache
def _stands_alone(op: type[Operation]) -> bool:
    """True if the op's verifier depends on types and attributes only."""
    known = issubclass(op, IRDLOperation) and op.name.partition(".")[0] in _DIALECTS
    return known and not any(op.has_trait(trait) for trait in _ELSEWHERE)
