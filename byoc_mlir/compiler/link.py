"""Linking of the host's and the regions' code into one module, and its external symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from byoc_mlir.abi import CONTEXT_OFFSET
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.region_calls import host_slots
from byoc_mlir.lowering.symbols import is_declaration, symbol_of


def join_modules(
    host: ModuleOp, others: Iterable[ModuleOp], shared: Iterable[ModuleOp] = ()
) -> None:
    """Moves functions and globals into `host`; definitions replace declarations.

    Args:
        others: modules whose definitions must be unique.
        shared: modules that may contain equal definitions of a symbol; the first one is kept.

    Raises:
        CompilationError: two of `others` define the same symbol.
    """
    symbols = {symbol_of(op): op for op in host.body.block.ops if symbol_of(op)}
    for module in dict.fromkeys(shared):
        defined = {symbol for symbol, op in symbols.items() if not is_declaration(op)}
        _join(host, [op for op in module.body.block.ops if symbol_of(op) not in defined], symbols)
    for module in others:
        _join(host, list(module.body.block.ops), symbols)


def _join(host: ModuleOp, ops: Sequence[Operation], symbols: dict[str, Operation]) -> None:
    for op in ops:
        op.detach()
        known = symbols.get(symbol_of(op))
        if known is None:
            host.body.block.add_op(op)
        elif is_declaration(op):
            continue
        elif is_declaration(known):
            host.body.block.insert_op_before(op, known)
            known.detach()
        else:
            raise CompilationError(
                f"symbol @{symbol_of(op)} is defined twice; a backend must prefix the symbols"
                " it defines with its region's"
            )
        symbols[symbol_of(op)] = op


def place_contexts(module: ModuleOp, codes: Iterable[RegionCode]) -> None:
    """Sets the first context slot of each region, which `add-entry-points` assigned, as an
    attribute of its function.
    """
    functions = {symbol_of(op): op for op in module.body.block.ops}
    first = host_slots(module)
    for code in codes:
        functions[code.function].attributes[CONTEXT_OFFSET] = IntegerAttr(first, i64)
        first += code.native.context_slots


def external_functions(module: ModuleOp) -> Sequence[str]:
    """Returns the functions that are called and not defined, without LLVM's intrinsics; sorted."""
    return sorted(
        name
        for op in module.body.block.ops
        if isinstance(op, llvm.FuncOp) and is_declaration(op)
        if not (name := op.sym_name.data).startswith("llvm.")
    )


def external_globals(module: ModuleOp) -> Sequence[str]:
    """Returns the globals that are used and not defined, sorted."""
    return sorted(
        op.sym_name.data
        for op in module.body.block.ops
        if isinstance(op, llvm.GlobalOp) and is_declaration(op)
    )
