"""Functions that the regions of a backend share, compiled once for all shapes of a model."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from byoc_mlir.dialects.symbols import mentioned_symbols
from byoc_mlir.lowering.llvm_ir.translate import top_level_text
from byoc_mlir.lowering.shared_kernels import SeparatedKernels, SharedKernels
from byoc_mlir.lowering.symbols import is_declaration, is_internal, symbol_of

_EXTERNAL = llvm.LinkageAttr("external")


def separate_functions(
    module: ModuleOp, names: Collection[str], shared: SharedKernels
) -> SeparatedKernels:
    """Takes functions out of a module of the `llvm` dialect, which declares them from here on.

    A function takes with it what it calls, of which other objects have copies; one that reaches a
    variable stays.

    Args:
        names: the symbols that may be taken out.
    """
    separated = SeparatedKernels()
    symbols = {name: op for op in module.ops if (name := symbol_of(op))}
    mentioned = {name: frozenset(mentioned_symbols(op)) for name, op in symbols.items()}
    others = [name for name, op in symbols.items() if name not in names or is_declaration(op)]
    texts: dict[str, str] = {}
    needed: dict[str, Operation] = {}
    for name in sorted({one for other in others for one in mentioned[other]} & {*names}):
        if not isinstance(symbols[name], llvm.FuncOp) or is_declaration(symbols[name]):
            continue
        parts = {one: symbols[one] for one in _reached([name], mentioned)}
        if any(_is_variable(op) for op in parts.values()):
            continue
        if shared.is_new(name, _structure(parts, texts), separated):
            needed |= parts
    compiled_now = {*separated.new.values()}
    new = {name: symbol for name, symbol in separated.symbols.items() if symbol in compiled_now}
    _declare(module, symbols, separated.symbols)
    left = {name: refers for name, refers in mentioned.items() if name not in separated.symbols}
    used = {*_reached([name for name in left if name not in names], left)}
    for name in left.keys() - used:
        symbols[name].detach()
    for name, op in needed.items():
        own = op.clone() if name in used else op
        if name in new:
            own.properties |= {"sym_name": StringAttr(new[name]), "linkage": _EXTERNAL}
        _rename(own, mentioned[name], new)
        separated.module.body.block.add_op(own)
    for name in used:
        _rename(symbols[name], mentioned[name], separated.symbols)
    return separated


def name_apart(module: ModuleOp, shared: SharedKernels) -> None:
    """Gives what only a module of the `llvm` dialect sees names that no other module of the model
    has: they are seen outside of an object where the module becomes several."""
    symbols = {
        name: shared.symbol_for(name)
        for op in module.ops
        if (name := symbol_of(op)) and not is_declaration(op) and is_internal(op)
    }
    for op in module.ops:
        _rename(op, {*mentioned_symbols(op)}, symbols)
        if symbol_of(op) in symbols:
            op.properties["sym_name"] = StringAttr(symbols[symbol_of(op)])


def _reached(roots: Collection[str], mentioned: Mapping[str, Collection[str]]) -> list[str]:
    """The symbols, and those that they mention, and so on: each once."""
    found, waiting = dict.fromkeys(roots), [*roots]
    while waiting:
        for name in sorted(mentioned[waiting.pop()]):
            if name in mentioned and name not in found:
                found[name] = None
                waiting.append(name)
    return [*found]


def _structure(parts: Mapping[str, Operation], texts: dict[str, str]) -> Hashable:
    """A key that is equal for equal functions that reach equal ones."""
    for name, op in parts.items():
        if name not in texts:
            texts[name] = top_level_text(op)
    return tuple(texts[name] for name in parts)


def _declare(
    module: ModuleOp, definitions: Mapping[str, Operation], symbols: Mapping[str, str]
) -> None:
    """Declares functions under their new symbols in place of their definitions."""
    for name, symbol in symbols.items():
        definition = definitions[name]
        assert isinstance(definition, llvm.FuncOp)
        declaration = llvm.FuncOp(symbol, definition.function_type, _EXTERNAL)
        module.body.block.insert_op_before(declaration, definition)
        definition.detach()


def _rename(op: Operation, mentioned: Collection[str], symbols: Mapping[str, str]) -> None:
    """Replaces what refers to the symbols; most functions mention none of them."""
    if symbols.keys().isdisjoint(mentioned):
        return
    for inner in op.walk():
        for place in (inner.properties, inner.attributes):
            for key, value in place.items():
                if isinstance(value, SymbolRefAttr) and value.root_reference.data in symbols:
                    place[key] = SymbolRefAttr(symbols[value.root_reference.data])


def _is_variable(op: Operation) -> bool:
    return isinstance(op, llvm.GlobalOp) and op.constant is None
