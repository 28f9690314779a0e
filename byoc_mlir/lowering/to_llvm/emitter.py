"""The cursor every lowering writes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerType,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.kernels.ops import call, integer_attribute

Lowering = Callable[[Any, "Emitter"], Sequence[SSAValue]]
"""Writes the llvm ops of one source op and returns the lowered results of that op."""

Lowerings = Mapping[type[Operation], Lowering]

EntryPoint = tuple[Sequence[Attribute], Attribute | None]
"""Argument types and result type of an external function."""


class Emitter:
    """Appends llvm ops to `block`, at the location of the op being lowered.

    Old values map to new ones by `emitter[value]`, old blocks by `emitter.successor(block)`; the
    old IR stays as it was until the whole function has been rebuilt, so a lowering still sees the
    original types on the operands of its op.
    """

    def __init__(self, externals: dict[str, EntryPoint]) -> None:
        self._externals = externals
        self._values: dict[SSAValue, SSAValue] = {}
        self._blocks: dict[Block, Block] = {}
        self._hoisted: list[Operation] = []
        self._source: Operation | None = None
        self.block = Block()

    def __getitem__(self, value: SSAValue) -> SSAValue:
        return self._values.get(value, value)

    def all(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The new values of several old ones."""
        return [self._values.get(value, value) for value in values]

    def successor(self, block: Block) -> Block:
        """The new block that stands for an old one."""
        return self._blocks[block]

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """States that `new` is the lowered `old`."""
        self._values[old] = new
        if new.name_hint is None:
            new.name_hint = old.name_hint

    def bind_block(self, old: Block, new: Block) -> None:
        """States that `new` stands for `old`, argument by argument."""
        self._blocks[old] = new
        for old_arg, new_arg in zip(old.args, new.args, strict=True):
            self.bind(old_arg, new_arg)

    def start(self, source: Operation) -> None:
        """What is written from here on comes from `source`."""
        self._source = source

    def add(self, op: Operation) -> None:
        """Appends an op."""
        if self._source is not None:
            op.location = self._source.location
        self.block.add_op(op)

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its only result."""
        self.add(op)
        return op.results[0]

    def hoist(self, op: Operation) -> SSAValue:
        """Puts an op that depends on nothing at the start of the function; returns its result."""
        if self._source is not None:
            op.location = self._source.location
        self._hoisted.append(op)
        return op.results[0]

    def flush_hoisted(self, entry: Block) -> None:
        """Moves what was hoisted to the start of the entry block."""
        if entry.first_op is None:
            entry.add_ops(self._hoisted)
        else:
            entry.insert_ops_before(self._hoisted, entry.first_op)
        self._hoisted = []

    def constant(self, value: int, type_: IntegerType = i64) -> SSAValue:
        """An integer constant."""
        return self.emit(integer_constant(value, type_))

    def call(self, name: str, args: Sequence[SSAValue], result: Attribute | None) -> list[SSAValue]:
        """A call of an external function, declared once per module."""
        self._externals.setdefault(name, ([arg.type for arg in args], result))
        op = call(SymbolRefAttr(name), args, result)
        self.add(op)
        return list(op.results)


def integer_constant(value: int, type_: IntegerType = i64) -> llvm.ConstantOp:
    """An `llvm.mlir.constant` op."""
    return llvm.ConstantOp.create(
        result_types=[type_],
        properties={"value": integer_attribute(value, type_)},
    )


def float_constant(value: float, type_: Attribute) -> llvm.ConstantOp:
    """An `llvm.mlir.constant` op of a float type."""
    assert isinstance(type_, BFloat16Type | Float16Type | Float32Type | Float64Type)
    return llvm.ConstantOp(FloatAttr(value, type_), type_)
