"""Structure of ops: keys that are equal for ops that compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import BINDS
from byoc_mlir.dialects.relay import WeightAttr
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.dialects.relay.size import CONSTANT_NAME


def properties_of(op: Operation) -> Hashable:
    """Returns an op's properties and attributes, without names and symbols."""
    found = {**op.properties, **op.attributes}
    return tuple(
        (name, value.data.digest if isinstance(value, WeightAttr) else value)
        for name, value in found.items()
        if name != CONSTANT_NAME and not isinstance(value, SymbolRefAttr)
    )


@dataclass
class Structure:
    """Structure of ops that follow each other; values get numbers when they first occur."""

    functions: Mapping[str, FuncOp]
    """Functions of the module by name, to compare those that ops call."""
    _numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def number(self, value: SSAValue) -> int:
        """Returns the number of a value; a new value gets the next one."""
        return self._numbers.setdefault(value, len(self._numbers))

    def add(self, op: Operation) -> Hashable:
        """Returns the key of the next op."""
        operands = tuple((self.number(value), value.type) for value in op.operands)
        results = tuple(map(self.number, op.results))
        called = op.symbols() if isinstance(op, ControlOp) else ()
        bodies = tuple(self._function(symbol.root_reference.data) for symbol in called)
        return (op.name, operands, results, tuple(op.result_types), properties_of(op), bodies)

    def _function(self, name: str) -> Hashable:
        function = self.functions[name]
        inner = Structure(self.functions)
        block = function.body.block
        arguments = tuple(map(inner.number, block.args))
        ops = tuple(map(inner.add, block.ops))
        return (function.function_type, function.attributes.get(BINDS), arguments, ops)
