"""Builder of `llvm` ops that all lowerings share."""

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
"""Function that emits the llvm ops for one source op, and returns its lowered results."""

Lowerings = Mapping[type[Operation], Lowering]

EntryPoint = tuple[Sequence[Attribute], Attribute | None]
"""Argument types and result type of an external function."""


class Emitter:
    """Builder that appends llvm ops to `block`, at the location of the op being lowered.

    `emitter[value]` maps old values to new ones, and `emitter.successor(block)` maps blocks. The
    old IR is unchanged until the whole function is rebuilt, so a lowering sees the original types
    of its op's operands.
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
        """Returns the new values for several old values."""
        return [self._values.get(value, value) for value in values]

    def successor(self, block: Block) -> Block:
        """Returns the new block of an old one."""
        return self._blocks[block]

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """Records that `new` is the lowered `old`."""
        self._values[old] = new
        if new.name_hint is None:
            new.name_hint = old.name_hint

    def bind_block(self, old: Block, new: Block) -> None:
        """Records that `new` is the lowered `old`, with its arguments."""
        self._blocks[old] = new
        for old_arg, new_arg in zip(old.args, new.args, strict=True):
            self.bind(old_arg, new_arg)

    def start(self, source: Operation) -> None:
        """Sets the op that is lowered from now on."""
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
        """Inserts an op without operands at the start of the function; returns its result."""
        if self._source is not None:
            op.location = self._source.location
        self._hoisted.append(op)
        return op.results[0]

    def flush_hoisted(self, entry: Block) -> None:
        """Moves the hoisted ops to the start of the entry block."""
        if entry.first_op is None:
            entry.add_ops(self._hoisted)
        else:
            entry.insert_ops_before(self._hoisted, entry.first_op)
        self._hoisted = []

    def constant(self, value: int, type_: IntegerType = i64) -> SSAValue:
        """Emits an integer constant."""
        return self.emit(integer_constant(value, type_))

    def call(self, name: str, args: Sequence[SSAValue], result: Attribute | None) -> list[SSAValue]:
        """Emits a call of an external function, which is declared once per module."""
        self._externals.setdefault(name, ([arg.type for arg in args], result))
        op = call(SymbolRefAttr(name), args, result)
        self.add(op)
        return list(op.results)


def integer_constant(value: int, type_: IntegerType = i64) -> llvm.ConstantOp:
    """Creates an `llvm.mlir.constant` op of an integer type."""
    return llvm.ConstantOp.create(
        result_types=[type_],
        properties={"value": integer_attribute(value, type_)},
    )


def float_constant(value: float, type_: Attribute) -> llvm.ConstantOp:
    """Creates an `llvm.mlir.constant` op of a float type."""
    assert isinstance(type_, BFloat16Type | Float16Type | Float32Type | Float64Type)
    return llvm.ConstantOp(FloatAttr(value, type_), type_)
