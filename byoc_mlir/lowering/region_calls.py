"""Attributes on a region's declaration that the host's code generation needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.abi import (
    CHECKS,
    COMPILER,
    CONTEXT_SLOTS,
    FOUND_SLOT,
    HOOKS_DEFINED,
    STATE_SLOTS,
    WORKSPACE,
)


@dataclass(frozen=True)
class RegionCall:
    """Properties of a region that callers need: the sizes of its slots, and the hooks that it
    defines.
    """

    symbol: str
    state_slots: int
    context_slots: int
    workspace_bytes: int
    hooks: tuple[str, ...]
    """Hooks among `load`, `open`, `close` and `unload` for which the region has a function."""

    def attach(self, declaration: FuncOp) -> None:
        """Writes these fields as attributes on the region's declaration."""
        declaration.attributes[WORKSPACE] = IntegerAttr(self.workspace_bytes, i64)
        declaration.attributes[STATE_SLOTS] = IntegerAttr(self.state_slots, i64)
        declaration.attributes[CONTEXT_SLOTS] = IntegerAttr(self.context_slots, i64)
        declaration.attributes[HOOKS_DEFINED] = ArrayAttr([StringAttr(hook) for hook in self.hooks])

    @staticmethod
    def of(declaration: FuncOp) -> RegionCall:
        """Reads the attributes that `attach` wrote."""
        return RegionCall(
            declaration.sym_name.data,
            int_attribute(declaration, STATE_SLOTS),
            int_attribute(declaration, CONTEXT_SLOTS),
            int_attribute(declaration, WORKSPACE),
            tuple(_strings(declaration, HOOKS_DEFINED)),
        )


def region_functions(module: ModuleOp) -> Sequence[FuncOp]:
    """Returns the outlined regions of a module, definitions or declarations, in order."""
    return [op for op in _functions(module.body.block.ops) if COMPILER in op.attributes]


def host_slots(module: ModuleOp) -> int:
    """Returns the number of the host's context slots, which precede the regions' slots."""
    return FOUND_SLOT + 1 if CHECKS in module.attributes else 0


def int_attribute(op: Operation, name: str) -> int:
    """Returns the value of an integer attribute, or 0 if it is absent."""
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def _functions(ops: Iterable[Operation]) -> Iterator[FuncOp]:
    return (op for op in ops if isinstance(op, FuncOp))


def _strings(op: FuncOp, name: str) -> Iterator[str]:
    attribute = op.attributes.get(name)
    for item in attribute if isinstance(attribute, ArrayAttr) else ():
        if isinstance(item, StringAttr):
            yield item.data
