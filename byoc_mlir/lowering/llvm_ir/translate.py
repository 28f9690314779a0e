"""Translation of a module of the `llvm` dialect, its functions and globals, to LLVM assembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.abi import GPU_KERNEL
from byoc_mlir.errors import CompilationError
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.llvm_ir.attributes import function_attributes, is_set, value_attributes
from byoc_mlir.lowering.llvm_ir.constants import initialiser, quoted, type_text
from byoc_mlir.lowering.llvm_ir.instructions import INSTRUCTIONS, Writer, convention_text
from byoc_mlir.lowering.llvm_ir.intrinsics import WRITERS
from byoc_mlir.lowering.llvm_ir.names import FunctionNames, literal, symbol
from byoc_mlir.lowering.llvm_ir.parts import ModulePart

_DECLARED = frozenset({"external", "extern_weak"})
_VISIBILITIES = ("", "hidden ", "protected ")
_UNNAMED_ADDR = ("", "local_unnamed_addr", "unnamed_addr")
_ARRAY_ALIGNMENT = 16
"""Alignment of an array of 16 bytes or more in the x86-64 ABI; LLVM's default here is 1."""


def global_text(op: llvm.GlobalOp) -> str:
    """Returns one global variable as LLVM assembly.

    Raises:
        CompilationError: LLVM cannot express the initialiser.
    """
    linkage = op.linkage.linkage.data
    is_declared = op.value is None and not op.body.blocks and linkage in _DECLARED
    keyword = "" if linkage == "external" and not is_declared else f"{linkage} "
    local = "dso_local " if is_set(op, "dso_local") else ""
    visibility = _VISIBILITIES[op.visibility_.value.data if op.visibility_ else 0]
    threads = "thread_local " if op.thread_local_ is not None else ""
    unnamed = _UNNAMED_ADDR[op.unnamed_addr.value.data if op.unnamed_addr else 0]
    space = op.addr_space.value.data
    addrspace = f"addrspace({space}) " if space else ""
    kind = "constant" if op.constant is not None else "global"
    content = type_text(op.global_type) if is_declared else _content(op)
    return (
        f"{symbol(op.sym_name.data)} = {keyword}{local}{visibility}{threads}"
        f"{unnamed and f'{unnamed} '}{addrspace}{kind} {content}{_suffix(op)}"
    )


def _suffix(op: llvm.GlobalOp) -> str:
    section = f", section {quoted(op.section.data.encode())}" if op.section is not None else ""
    alignment = op.alignment.value.data if op.alignment else 0
    if not alignment and isinstance(op.value, DenseIntOrFPElementsAttr):
        alignment = _ARRAY_ALIGNMENT
    return section + (f", align {alignment}" if alignment else "")


def _content(op: llvm.GlobalOp) -> str:
    if op.value is not None:
        return initialiser(op.value, op.global_type)
    if op.body.blocks:
        return f"{type_text(op.global_type)} {_region_value(op)}"
    return f"{type_text(op.global_type)} zeroinitializer"


def _region_value(op: llvm.GlobalOp) -> str:
    """Returns the constant that an initialiser region builds with `llvm.insertvalue`."""
    values: dict[SSAValue, _Constant] = {}
    for inner in op.body.block.ops:
        match inner:
            case llvm.ReturnOp(arg=SSAValue() as arg):
                return values[arg].text()
            case llvm.InsertValueOp():
                path = [int(index) for index in inner.position.get_values()]
                values[inner.res] = values[inner.container].inserted(path, values[inner.value])
            case _:
                text = literal(inner)
                if text is None:
                    raise CompilationError(
                        f"llvm-ir: {inner.name} in the initialiser of global @{op.sym_name.data} "
                        "is not supported; accepted are constants, addresses and llvm.insertvalue"
                    )
                result = inner.results[0]
                values[result] = _Constant(result.type, text)
    raise CompilationError(f"llvm-ir: the initialiser of @{op.sym_name.data} returns nothing")


@dataclass(frozen=True)
class _Constant:
    """Literal of an aggregate, some of whose fields are replaced."""

    type_: Attribute
    base: str
    fields: Mapping[int, _Constant] = field(default_factory=dict[int, "_Constant"])

    def inserted(self, path: Sequence[int], value: _Constant) -> _Constant:
        """Returns a copy with the field at `path` replaced."""
        if not path:
            return value
        inner = self._field(path[0]).inserted(path[1:], value)
        return replace(self, fields={**self.fields, path[0]: inner})

    def text(self) -> str:
        """Returns the constant without its type."""
        if not self.fields:
            return self.base
        fields = [self._field(index) for index in range(len(_field_types(self.type_)))]
        listed = ", ".join(f"{type_text(field.type_)} {field.text()}" for field in fields)
        return f"[{listed}]" if isinstance(self.type_, llvm.LLVMArrayType) else f"{{ {listed} }}"

    def _field(self, index: int) -> _Constant:
        default = _Constant(_field_types(self.type_)[index], self.base)
        return self.fields.get(index, default)


def _field_types(type_: Attribute) -> Sequence[Attribute]:
    match type_:
        case llvm.LLVMStructType():
            return type_.types.data
        case llvm.LLVMArrayType():
            return [type_.type] * type_.size.data
        case _:
            raise CompilationError(f"llvm-ir: {type_} has no fields to insert a value into")


_WRITERS: Mapping[type[Operation], Writer] = {**INSTRUCTIONS, **WRITERS}

_MODULE_STRINGS = {
    "llvm.data_layout": "target datalayout",
    "llvm.target_triple": "target triple",
}


def translate_module(module: ModuleOp) -> str:
    """Returns the module as LLVM assembly.

    The text has all linkages, attributes, alignments, flags and orderings. Only locations and the
    attributes of other dialects are omitted.

    Raises:
        CompilationError: an op cannot be expressed; the error names it.
    """
    lines = _module_strings(module)
    for op in in_time(module.body.block.ops):
        lines.extend(_top_level(op))
    return _joined(lines)


def translate_part(module: ModuleOp, part: ModulePart) -> str:
    """Returns one part of a module as LLVM assembly; raises as `translate_module`."""
    lines = _module_strings(module)
    for op in part.declarations:
        if isinstance(op, llvm.FuncOp) and op.body.blocks:
            # not hidden, because LLVM would assume that a hidden function is near
            lines.append(_declared(op, ""))
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


def _linkage(op: llvm.FuncOp, part: ModulePart) -> str:
    """Returns a function's linkage.

    An internal function that other parts use becomes hidden, so that no other module sees it.
    """
    return "hidden " if op.sym_name.data in part.shared else f"{op.linkage.linkage.data} "


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
    convention = "ptx_kernel " if GPU_KERNEL in op.attributes else convention_text(op.CConv)
    return (
        f"{linkage}{local}{visibility}{convention}{result}{type_text(type_.output)} "
        f"{symbol(name)}({', '.join(args)}){unnamed and f' {unnamed}'}{function_attributes(op)}"
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
