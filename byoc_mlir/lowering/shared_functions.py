"""Functions that the regions of a backend share, compiled once for all shapes of a model."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from byoc_mlir.dialects.symbols import mentioned_symbols
from byoc_mlir.lowering.llvm_ir.translate import top_level_text
from byoc_mlir.lowering.shared_kernels import SeparatedKernels, SharedKernels, reached
from byoc_mlir.lowering.symbols import is_declaration, symbol_of

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
    others = [op for name, op in symbols.items() if name not in names or is_declaration(op)]
    roots = [name for name in dict.fromkeys(_all_mentioned(others)) if name in names]
    texts: dict[str, str] = {}
    needed: dict[str, Operation] = {}
    for name in roots:
        if not isinstance(symbols[name], llvm.FuncOp) or is_declaration(symbols[name]):
            continue
        parts = {name: symbols[name], **reached([symbols[name]], symbols)}
        if any(_is_variable(op) for op in parts.values()):
            continue
        if shared.is_new(name, _structure(parts, texts), separated):
            needed |= parts
    compiled_now = {*separated.new.values()}
    new = {name: symbol for name, symbol in separated.symbols.items() if symbol in compiled_now}
    for name, op in needed.items():
        copy = op.clone()
        if name in new:
            copy.properties |= {"sym_name": StringAttr(new[name]), "linkage": _EXTERNAL}
        separated.module.body.block.add_op(copy)
    _rename(separated.module, new)
    _declare(module, symbols, separated.symbols)
    _drop_unused(module, names)
    return separated


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
    _rename(module, symbols)


def _drop_unused(module: ModuleOp, names: Collection[str]) -> None:
    """Drops those of the functions and globals that nothing refers to any more."""
    symbols = {name: op for op in module.ops if (name := symbol_of(op))}
    used = reached([op for name, op in symbols.items() if name not in names], symbols)
    for name, op in symbols.items():
        if name in names and name not in used:
            op.detach()


def _rename(module: ModuleOp, symbols: Mapping[str, str]) -> None:
    """Replaces what refers to the symbols."""
    for op in module.walk():
        for place in (op.properties, op.attributes):
            for key, value in place.items():
                if isinstance(value, SymbolRefAttr) and value.root_reference.data in symbols:
                    place[key] = SymbolRefAttr(symbols[value.root_reference.data])


def _all_mentioned(ops: Collection[Operation]) -> list[str]:
    return [name for op in ops for name in mentioned_symbols(op)]


def _is_variable(op: Operation) -> bool:
    return isinstance(op, llvm.GlobalOp) and op.constant is None
