"""Symbols of a module in the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from byoc_mlir.limits import in_time


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


def external_functions(module: ModuleOp) -> Sequence[str]:
    """Returns the functions that are called and not defined, without LLVM's intrinsics; sorted."""
    return sorted(
        name
        for op in module.body.block.ops
        if isinstance(op, llvm.FuncOp) and is_declaration(op)
        if not (name := op.sym_name.data).startswith("llvm.")
    )


def move_functions(module: ModuleOp, into: ModuleOp) -> None:
    """Moves functions and variables to another module, except for symbols that it has."""
    known = {symbol_of(op) for op in into.ops}
    for op in in_time(module.ops):
        if symbol_of(op) not in known:
            op.detach()
            into.body.block.add_op(op)


def ops_to_lower(module: ModuleOp) -> Iterator[Operation]:
    """Yields the ops of a module, without the bodies of functions in the `llvm` dialect.

    These bodies are built-in kernels: they contain most of the ops, but need no lowering.
    """
    for op in module.ops:
        if isinstance(op, llvm.FuncOp):
            yield op
        else:
            yield from op.walk()
