"""The pass `mark-cold-functions`: disables the optimisation of functions that runs do not call."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from byoc_mlir.abi import RUN
from byoc_mlir.dialects.symbols import mentioned_symbols

_SAID = frozenset({"always_inline", "inline_hint", "optimize_size", "minsize", "passthrough"})
"""Attributes by which a backend determines the optimisation of a function."""


class MarkColdFunctions(ModulePass):
    """Tells LLVM not to optimise functions that `byoc_run` does not reach.

    Such functions run once, and spend their time in libraries.

    ```mlir
    llvm.func @byoc_run() { llvm.call @hot() : () -> () … }
    llvm.func @byoc_load() { llvm.call @cold() : () -> () … }
    ```

    becomes

    ```mlir
    llvm.func @byoc_run() { llvm.call @hot() : () -> () … }
    llvm.func @byoc_load() attributes {no_inline, optimize_none} { llvm.call @cold() : () -> () … }
    ```

    `@cold` gets the same attributes, unless a global or a hot function refers to it too, or it
    already has attributes about optimisation.
    """

    name = "mark-cold-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {
            function.sym_name.data: function
            for function in op.ops
            if isinstance(function, llvm.FuncOp) and function.body.blocks
        }
        hot = _reached(op, functions)
        for name, function in functions.items():
            if name not in hot and _SAID.isdisjoint({*function.properties, *function.attributes}):
                function.properties |= {"no_inline": UnitAttr(), "optimize_none": UnitAttr()}


def _reached(module: ModuleOp, functions: Mapping[str, llvm.FuncOp]) -> set[str]:
    """Returns the functions that `byoc_run`, a global, or another reached function refers to."""
    found = {RUN.symbol}
    waiting = [op for op in module.ops if isinstance(op, llvm.GlobalOp)]
    waiting = [*waiting, *([functions[RUN.symbol]] if RUN.symbol in functions else [])]
    while waiting:
        for name in mentioned_symbols(waiting.pop()):
            if name in functions and name not in found:
                found.add(name)
                waiting.append(functions[name])
    return found
