"""Blocks that are partitioned, and the kinds of ops in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
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
    """Yields the functions that the partitioner may cut, in program order.

    Skips outlined regions, and functions that bind sizes which are known only at run time.
    """
    for op in module.walk():
        if isinstance(op, FuncOp) and region_compiler(op) is None and bound_symbol(op) is None:
            yield op


def blocks_of(func: FuncOp) -> Iterator[Block]:
    """Yields a function's blocks in program order; nested blocks follow the block around them.

    Each block is partitioned separately. Bodies of composites are skipped.
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


def partitioned_blocks(module: ModuleOp) -> Iterator[Block]:
    """Yields the blocks of all functions that the partitioner may cut, in program order."""
    for func in host_functions(module):
        yield from blocks_of(func)


def is_constant(op: Operation) -> bool:
    """True if the op is a constant; the graph has no node for it, since each user gets a copy."""
    return _is_constant_kind(type(op))


def is_constant_value(value: SSAValue) -> bool:
    """True if a constant defines the value."""
    return isinstance(value.owner, Operation) and is_constant(value.owner)


@cache
def _is_constant_kind(kind: type[Operation]) -> bool:
    return kind.has_trait(ConstantLike, value_if_unregistered=False)


def is_terminator(op: Operation) -> bool:
    """True if the op ends its block; an unregistered op counts as terminator if it is the last
    one.
    """
    if isinstance(op, UnregisteredOp):
        return op.next_op is None
    return _is_terminator_kind(type(op))


@cache
def _is_terminator_kind(kind: type[Operation]) -> bool:
    return kind.has_trait(IsTerminator)


def is_annotation(op: Operation) -> bool:
    """True if the op is `byoc.compiler_begin` or `byoc.compiler_end`."""
    return isinstance(op, CompilerBeginOp | CompilerEndOp)


def can_offload(op: Operation) -> bool:
    """True if a region may contain the op: it is a composite, or a pure op without regions."""
    return isinstance(op, CompositeOp) or is_movable(op)


def is_node(op: Operation) -> bool:
    """True if the op is a node of the graph that is partitioned."""
    return not (is_annotation(op) or is_constant(op) or is_terminator(op))


def values_used(op: Operation) -> Iterator[SSAValue]:
    """Yields the op's operands, and all operands of ops in its regions.

    Skips the regions of a composite.
    """
    yield from op.operands
    if isinstance(op, CompositeOp):
        return
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def region_symbols(module: ModuleOp) -> frozenset[str]:
    """Returns the symbols of the outlined regions."""
    return frozenset(
        op.sym_name.data
        for op in module.walk()
        if isinstance(op, FuncOp) and region_compiler(op) is not None
    )


def has_effects(op: Operation, regions: Container[str]) -> bool:
    """True if the op must keep its order relative to other ops with effects.

    A call of one of the outlined `regions` has no effects.
    """
    if isinstance(op, CallOp):
        return op.callee.string_value() not in regions
    return not (can_offload(op) or is_side_effect_free(op))


def live_ops(block: Block) -> set[Operation]:
    """Returns the ops of a block that its terminator or an op with effects depends on."""
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


def move_ops(
    ops: Iterable[Operation],
    block: Block,
    inputs: Sequence[SSAValue],
    constants: Iterable[Operation],
) -> None:
    """Moves ops to the end of an empty block, whose arguments take the place of `inputs`.

    Copies of `constants`, which the block begins with, take the place of these.
    """
    inner = dict[SSAValue, SSAValue](zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for constant in constants:
        copy = constant.clone()
        block.add_op(copy)
        inner |= zip(constant.results, copy.results, strict=True)
    for op in ops:
        op.detach()
        block.add_op(op)
        for index, operand in enumerate(op.operands):
            if operand in inner:
                op.operands[index] = inner[operand]


def erase_unused(constants: Iterable[Operation]) -> None:
    """Erases each of the given constants that has no users."""
    for constant in constants:
        if not any(result.uses.get_length() for result in constant.results):
            Rewriter.erase_op(constant)
