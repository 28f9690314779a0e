"""The symbols of a module in the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation


def symbol_of(op: Operation) -> str:
    """The symbol that an op defines or declares; empty for an op without one."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else ""


def is_internal(op: Operation) -> bool:
    """Whether it is a function that no other module sees."""
    return isinstance(op, llvm.FuncOp) and op.linkage.linkage.data == "internal"


def is_declaration(op: Operation) -> bool:
    """Whether a function or a global is defined elsewhere."""
    if isinstance(op, llvm.GlobalOp):
        return op.value is None and not op.body.blocks
    return not any(region.blocks for region in op.regions)


def ops_to_lower(module: ModuleOp) -> Iterator[Operation]:
    """The ops of a module without the bodies of functions that were written in the `llvm` dialect,
    as kernels are: most of the ops, and nothing is to be done in them.
    """
    for op in module.ops:
        if isinstance(op, llvm.FuncOp):
            yield op
        else:
            yield from op.walk()
