"""The pass `drop-unused-functions`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.dialects.relay import SymbolOp
from byoc_mlir.dialects.relay.symbols import bound_symbol
from byoc_mlir.dialects.symbols import mentioned_symbols


class DropUnusedFunctions(ModulePass):
    """Removes private host functions that no public function reaches.

    Such functions are branches and loop bodies whose results are unused. The pass also removes the
    symbols that only these functions bind.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
    func.func private @branch(%x: tensor<4xf32>) -> tensor<4xf32> { … }
    // becomes
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
    ```
    """

    name = "drop-unused-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {
            function.sym_name.data: function for function in op.ops if isinstance(function, FuncOp)
        }
        needed = [function for function in functions.values() if not _is_private(function)]
        unused = {name: function for name, function in functions.items() if _is_private(function)}
        while needed:
            mentioned = set(mentioned_symbols(needed.pop()))
            needed += [unused.pop(name) for name in mentioned & unused.keys()]
        left = {
            bound_symbol(function) for name, function in functions.items() if name not in unused
        }
        unbound = set(map(bound_symbol, unused.values())) - left
        symbols = [each for each in op.ops if isinstance(each, SymbolOp)]
        gone = [symbol for symbol in symbols if symbol.sym_name.data in unbound]
        for each in (*unused.values(), *gone):
            Rewriter.erase_op(each)


def _is_private(function: FuncOp) -> bool:
    """True if only this module may call a function; regions of a backend are excluded."""
    visibility = function.sym_visibility
    is_private = visibility is not None and visibility.data == "private"
    return is_private and region_compiler(function) is None
