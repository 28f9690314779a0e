"""The blocks that are partitioned, and what is in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import cache

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike, IsTerminator, is_side_effect_free

from byoc_mlir.dialects.byoc import CompilerBeginOp, CompilerEndOp, CompositeOp, region_compiler
from byoc_mlir.dialects.relay.symbols import bound_symbol
from byoc_mlir.patterns.scope import is_movable


def host_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions of which backends may take parts, in program order: not the outlined regions
    themselves, nor what has sizes that are known when the model runs.
    """
    for op in module.walk():
        if isinstance(op, FuncOp) and region_compiler(op) is None and bound_symbol(op) is None:
            yield op


def blocks_of(func: FuncOp) -> Iterator[Block]:
    """A function's blocks in program order, nested ones after the block that they are in.

    Each is a scope of its own.
    """
    pending = list(reversed(func.body.blocks))
    while pending:
        block = pending.pop()
        yield block
        nested = [
            inner
            for op in block.ops
            if not isinstance(op, CompositeOp)
            for region in op.regions
            for inner in region.blocks
        ]
        pending.extend(reversed(nested))


def is_constant(op: Operation) -> bool:
    """Whether the op is a constant: no node of the graph, copied to where it is needed."""
    return _is_constant_kind(type(op))


@cache
def _is_constant_kind(kind: type[Operation]) -> bool:
    return kind.has_trait(ConstantLike, value_if_unregistered=False)


def is_terminator(op: Operation) -> bool:
    """Whether the op ends its block; an op that is not registered does where it is the last."""
    if isinstance(op, UnregisteredOp):
        return op.next_op is None
    return _is_terminator_kind(type(op))


@cache
def _is_terminator_kind(kind: type[Operation]) -> bool:
    return kind.has_trait(IsTerminator)


def is_annotation(op: Operation) -> bool:
    """Whether the op is an annotation."""
    return isinstance(op, CompilerBeginOp | CompilerEndOp)


def can_offload(op: Operation) -> bool:
    """Whether a region may hold the op at all: a composite, or a pure op without regions."""
    return isinstance(op, CompositeOp) or is_movable(op)


def is_node(op: Operation) -> bool:
    """Whether the op is a node of the graph that is partitioned."""
    return not (is_annotation(op) or is_constant(op) or is_terminator(op))


def values_used(op: Operation) -> Iterator[SSAValue]:
    """The operands of an op, and what its regions use of the values around it."""
    yield from op.operands
    if isinstance(op, CompositeOp):
        return
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def region_symbols(module: ModuleOp) -> frozenset[str]:
    """The symbols of the regions that are outlined already."""
    return frozenset(
        op.sym_name.data
        for op in module.walk()
        if isinstance(op, FuncOp) and region_compiler(op) is not None
    )


def has_effects(op: Operation, regions: Container[str]) -> bool:
    """Whether the op must keep its place among others that have effects.

    A call of one of the outlined `regions` has none.
    """
    if isinstance(op, CallOp):
        return op.callee.string_value() not in regions
    return not (can_offload(op) or is_side_effect_free(op))


def live_ops(block: Block) -> set[Operation]:
    """The ops of a block that its terminator or an effect needs."""
    live = set[Operation]()
    pending = [
        op
        for op in block.ops
        if is_terminator(op) or not (is_annotation(op) or can_offload(op) or is_constant(op))
    ]
    while pending:
        op = pending.pop()
        if op in live:
            continue
        live.add(op)
        pending.extend(
            value.owner
            for value in values_used(op)
            if isinstance(value.owner, Operation) and value.owner.parent is block
        )
    return live


def erase_unused(constants: Iterable[Operation]) -> None:
    """Erases those of the constants that nothing uses any more."""
    for constant in constants:
        if not any(result.uses.get_length() for result in constant.results):
            Rewriter.erase_op(constant)
