"""What the host code needs to know of a region: attributes on its declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

COMPILER = "byoc.compiler"
WORKSPACE = "byoc.workspace"
"""On a declaration: bytes of arena that a call needs beside its arguments."""
WORKSPACE_OFFSET = "byoc.workspace_offset"
"""On a declaration, after `plan-buffers`: where in the arena they are."""
ARENA_BYTES = "byoc.arena_bytes"
"""On the host function, after `plan-buffers`, and then on the module: the size of the arena."""
_STATE_SLOTS = "byoc.state_slots"
_CONTEXT_SLOTS = "byoc.context_slots"
_HOOKS = "byoc.hooks"


@dataclass(frozen=True)
class RegionCall:
    """A region as its callers see it: sizes of its slots, and which hooks it defines."""

    symbol: str
    state_slots: int
    context_slots: int
    workspace_bytes: int
    hooks: tuple[str, ...]
    """Of `load`, `open`, `close`, `unload`: those for which the region has a function."""

    def attach(self, declaration: FuncOp) -> None:
        """Writes all this down on the region's declaration."""
        declaration.attributes[WORKSPACE] = IntegerAttr(self.workspace_bytes, i64)
        declaration.attributes[_STATE_SLOTS] = IntegerAttr(self.state_slots, i64)
        declaration.attributes[_CONTEXT_SLOTS] = IntegerAttr(self.context_slots, i64)
        declaration.attributes[_HOOKS] = ArrayAttr([StringAttr(hook) for hook in self.hooks])

    @staticmethod
    def of(declaration: FuncOp) -> RegionCall:
        """What `attach` wrote."""
        return RegionCall(
            declaration.sym_name.data,
            int_attribute(declaration, _STATE_SLOTS),
            int_attribute(declaration, _CONTEXT_SLOTS),
            int_attribute(declaration, WORKSPACE),
            tuple(_strings(declaration, _HOOKS)),
        )


def region_functions(module: ModuleOp) -> Sequence[FuncOp]:
    """The outlined regions of a module, definitions or declarations, in order."""
    return [op for op in _functions(module.body.block.ops) if COMPILER in op.attributes]


def int_attribute(op: Operation, name: str) -> int:
    """The value of an integer attribute, 0 when it is not there."""
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def _functions(ops: Iterable[Operation]) -> Iterator[FuncOp]:
    return (op for op in ops if isinstance(op, FuncOp))


def _strings(op: FuncOp, name: str) -> Iterator[str]:
    attribute = op.attributes.get(name)
    for item in attribute if isinstance(attribute, ArrayAttr) else ():
        if isinstance(item, StringAttr):
            yield item.data
