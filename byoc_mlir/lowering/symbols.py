"""Symbols of a module in the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation


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


def ops_to_lower(module: ModuleOp) -> Iterator[Operation]:
    """Yields the ops of a module, without the bodies of functions in the `llvm` dialect.

    These bodies are built-in kernels: they contain most of the ops, but need no lowering.
    """
    for op in module.ops:
        if isinstance(op, llvm.FuncOp):
            yield op
        else:
            yield from op.walk()
