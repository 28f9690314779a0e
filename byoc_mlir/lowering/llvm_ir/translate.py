"""A module of the `llvm` dialect as LLVM assembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation

from byoc_mlir.errors import CompilationError
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.llvm_ir.attributes import function_attributes, is_set, value_attributes
from byoc_mlir.lowering.llvm_ir.constants import quoted
from byoc_mlir.lowering.llvm_ir.globals import global_text
from byoc_mlir.lowering.llvm_ir.instructions import INSTRUCTIONS, Writer, convention_text
from byoc_mlir.lowering.llvm_ir.intrinsics import WRITERS
from byoc_mlir.lowering.llvm_ir.names import FunctionNames, literal, symbol
from byoc_mlir.lowering.llvm_ir.parts import Part
from byoc_mlir.lowering.llvm_ir.types import type_text

_WRITERS: Mapping[type[Operation], Writer] = {**INSTRUCTIONS, **WRITERS}

_VISIBILITIES = ("", "hidden ", "protected ")
_UNNAMED_ADDR = ("", " local_unnamed_addr", " unnamed_addr")
_DECLARED = frozenset({"external", "extern_weak"})
_MODULE_STRINGS = {
    "llvm.data_layout": "target datalayout",
    "llvm.target_triple": "target triple",
}


def translate_module(module: ModuleOp) -> str:
    """The module as LLVM assembly.

    Every linkage, attribute, alignment, flag and ordering is kept. Raises `CompilationError` that
    names the op for anything that cannot be expressed; nothing is dropped silently, except
    locations and the attributes of other dialects.
    """
    lines = _module_strings(module)
    for op in in_time(module.body.block.ops):
        lines.extend(_top_level(op))
    return _joined(lines)


def translate_part(module: ModuleOp, part: Part) -> str:
    """One part of a module as LLVM assembly; raises what `translate_module` raises."""
    lines = _module_strings(module)
    for op in part.declarations:
        if isinstance(op, llvm.FuncOp) and op.body.blocks:
            lines.append(_declaration_elsewhere(op))
        else:
            lines.extend(_top_level(op))
    for op in part.definitions:
        if isinstance(op, llvm.FuncOp):
            lines.extend(_definition(op, _linkage(op, part)))
        else:
            lines.extend(_top_level(op))
    return _joined(lines)


def _module_strings(module: ModuleOp) -> list[str]:
    return [
        f"{keyword} = {quoted(value.data.encode())}"
        for name, keyword in _MODULE_STRINGS.items()
        if isinstance(value := module.attributes.get(name), StringAttr)
    ]


def _joined(lines: Sequence[str]) -> str:
    return "\n".join([*lines, "!0 = !{i32 1}"]) + "\n"


def _linkage(op: llvm.FuncOp, part: Part) -> str:
    """What says who sees a function: of internal ones that parts share, no other module."""
    return "hidden " if op.sym_name.data in part.shared else f"{op.linkage.linkage.data} "


def top_level_text(op: Operation) -> str:
    """One function or global as LLVM assembly; raises what `translate_module` raises."""
    return "\n".join(_top_level(op))


def _top_level(op: Operation) -> Iterator[str]:
    match op:
        case llvm.FuncOp() if op.body.blocks:
            yield from _definition(op, f"{op.linkage.linkage.data} ")
        case llvm.FuncOp():
            yield _declaration(op)
        case llvm.GlobalOp():
            yield global_text(op)
        case _:
            raise CompilationError(f"llvm-ir: {op.name} at {op.location} cannot be translated")


def _declaration(op: llvm.FuncOp) -> str:
    linkage = op.linkage.linkage.data
    name = op.sym_name.data
    if linkage not in _DECLARED:
        raise CompilationError(
            f"llvm-ir: function @{name} has no body, so its linkage must be external, not {linkage}"
        )
    return _declared(op, "" if linkage == "external" else f"{linkage} ")


def _declaration_elsewhere(op: llvm.FuncOp) -> str:
    """The declaration of a function that another part defines, which may lie anywhere: a hidden one
    would be expected near.
    """
    return _declared(op, "")


def _declared(op: llvm.FuncOp, linkage: str) -> str:
    inputs = op.function_type.inputs.data
    attributes = value_attributes(op.arg_attrs, len(inputs), f"an argument of @{op.sym_name.data}")
    args = [
        f"{type_text(type_)} {text}".rstrip()
        for type_, text in zip(inputs, attributes, strict=True)
    ]
    return f"declare {_header(op, args, linkage)}"


def _definition(op: llvm.FuncOp, linkage: str) -> Iterator[str]:
    names = FunctionNames(op.body)
    entry = op.body.blocks.first
    assert entry is not None
    if names.incoming[entry]:
        raise CompilationError(f"llvm-ir: the entry block of @{op.sym_name.data} is jumped to")
    attributes = value_attributes(
        op.arg_attrs, len(entry.args), f"an argument of @{op.sym_name.data}"
    )
    args = [
        f"{type_text(arg.type)} {text}{names[arg]}"
        for arg, text in zip(entry.args, attributes, strict=True)
    ]
    yield f"define {_header(op, args, linkage)} {{"
    for block in op.body.blocks:
        yield f"{names.label(block)}:"
        if block is not entry:
            yield from _phis(block, names)
        yield from _instructions(block, names)
    for label, destination in names.edge_blocks:
        yield f"{label}:"
        yield f"  br label %{names.label(destination)}"
    yield "}"


def _header(op: llvm.FuncOp, args: list[str], linkage: str) -> str:
    type_ = op.function_type
    name = op.sym_name.data
    if type_.is_variadic:
        args = [*args, "..."]
    (result,) = value_attributes(op.res_attrs, 1, f"the result of @{name}")
    local = "dso_local " if is_set(op, "dso_local") else ""
    visibility = _VISIBILITIES[op.visibility_.value.data]
    unnamed = _UNNAMED_ADDR[op.unnamed_addr.value.data if op.unnamed_addr else 0]
    return (
        f"{linkage}{local}{visibility}{convention_text(op.CConv)}{result}{type_text(type_.output)} "
        f"{symbol(name)}({', '.join(args)}){unnamed}{function_attributes(op)}"
    )


def _phis(block: Block, names: FunctionNames) -> Iterator[str]:
    incoming = names.incoming[block]
    if block.args and not incoming:
        yield from (f"  {names[arg]} = freeze {type_text(arg.type)} poison" for arg in block.args)
        return
    for index, arg in enumerate(block.args):
        values = ", ".join([f"[ {names[args[index]]}, %{label} ]" for label, args in incoming])
        yield f"  {names[arg]} = phi {type_text(arg.type)} {values}"


def _instructions(block: Block, names: FunctionNames) -> Iterator[str]:
    for op in block.ops:
        writer = _WRITERS.get(type(op))
        if writer is None:
            if literal(op) is not None:
                continue
            raise CompilationError(f"llvm-ir: {op.name} at {op.location} cannot be translated")
        text = writer(op, names)
        yield f"  {names[op.results[0]]} = {text}" if op.results else f"  {text}"
