"""Joining the host's and the regions' code to one module, and finding what it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from byoc_mlir.errors import CompilationError


def join_modules(
    host: ModuleOp, others: Iterable[ModuleOp], shared: Iterable[ModuleOp] = ()
) -> None:
    """Moves functions and globals into `host`; definitions replace declarations.

    Args:
        others: modules whose definitions nobody else has.
        shared: modules that may define the same symbols alike; the first definition is kept.

    Raises:
        CompilationError: two modules define one symbol.
    """
    symbols = {_symbol(op): op for op in host.body.block.ops if _symbol(op)}
    for module in dict.fromkeys(shared):
        defined = {symbol for symbol, op in symbols.items() if not _is_declaration(op)}
        _join(host, [op for op in module.body.block.ops if _symbol(op) not in defined], symbols)
    for module in others:
        _join(host, list(module.body.block.ops), symbols)


def _join(host: ModuleOp, ops: Sequence[Operation], symbols: dict[str, Operation]) -> None:
    for op in ops:
        op.detach()
        known = symbols.get(_symbol(op))
        if known is None:
            host.body.block.add_op(op)
        elif _is_declaration(op):
            continue
        elif _is_declaration(known):
            host.body.block.insert_op_before(op, known)
            known.detach()
        else:
            raise CompilationError(
                f"symbol @{_symbol(op)} is defined twice; a backend must prefix the symbols"
                " it defines with its region's"
            )
        symbols[_symbol(op)] = op


def external_functions(module: ModuleOp) -> Sequence[str]:
    """The functions that are called and not defined, without LLVM's intrinsics; sorted."""
    return sorted(
        name
        for op in module.body.block.ops
        if isinstance(op, llvm.FuncOp) and _is_declaration(op)
        if not (name := op.sym_name.data).startswith("llvm.")
    )


def external_globals(module: ModuleOp) -> Sequence[str]:
    """The globals that are used and not defined, sorted."""
    return sorted(
        op.sym_name.data
        for op in module.body.block.ops
        if isinstance(op, llvm.GlobalOp) and _is_declaration(op)
    )


def defined_symbols(module: ModuleOp) -> Sequence[str]:
    """The functions and globals that a module defines."""
    return [_symbol(op) for op in module.body.block.ops if not _is_declaration(op)]


def _symbol(op: Operation) -> str:
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else ""


def _is_declaration(op: Operation) -> bool:
    if isinstance(op, llvm.GlobalOp):
        return op.value is None and not op.body.blocks
    return not any(region.blocks for region in op.regions)
