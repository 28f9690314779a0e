"""Symbols of a module in the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation


def symbol_of(op: Operation) -> str:
    """Returns the symbol that an op defines or declares, or "" for an op without one."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else ""


def is_internal(op: Operation) -> bool:
    """True if the op is a function with internal linkage."""
    return isinstance(op, llvm.FuncOp) and op.linkage.linkage.data == "internal"


def is_declaration(op: Operation) -> bool:
    """True if a function or a global is defined elsewhere."""
    if isinstance(op, llvm.GlobalOp):
        return op.value is None and not op.body.blocks
    return not any(region.blocks for region in op.regions)


def ops_to_lower(module: ModuleOp) -> Iterator[Operation]:
    """Yields the ops of a module, without the bodies of functions in the `llvm` dialect.

    These bodies are built-in kernels: they contain most of the ops, but need no lowering.
    """
    for op in module.ops:
        if isinstance(op, llvm.FuncOp):
            yield op
        else:
            yield from op.walk()
