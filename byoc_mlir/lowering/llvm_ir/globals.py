"""Globals as LLVM assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir.attributes import is_set
from byoc_mlir.lowering.llvm_ir.constants import initialiser, quoted
from byoc_mlir.lowering.llvm_ir.names import literal, symbol
from byoc_mlir.lowering.llvm_ir.types import type_text

_DECLARED = frozenset({"external", "extern_weak"})
_VISIBILITIES = ("", "hidden ", "protected ")
_UNNAMED_ADDR = ("", "local_unnamed_addr ", "unnamed_addr ")
_ARRAY_ALIGNMENT = 16
"""What the x86-64 ABI gives an array of 16 bytes or more; its bytes alone would ask for 1."""


def global_text(op: llvm.GlobalOp) -> str:
    """One global variable. Raises `CompilationError` for an initialiser LLVM cannot express."""
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
        f"{symbol(op.sym_name.data)} = {keyword}{local}{visibility}{threads}{unnamed}{addrspace}"
        f"{kind} {content}{_suffix(op)}"
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
    """The constant an initialiser region returns: literals put together by `llvm.insertvalue`."""
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
    """A literal, with some of its fields replaced."""

    type_: Attribute
    base: str
    fields: Mapping[int, _Constant] = field(default_factory=dict[int, "_Constant"])

    def inserted(self, path: Sequence[int], value: _Constant) -> _Constant:
        """A copy with the field at `path` replaced."""
        if not path:
            return value
        inner = self._field(path[0]).inserted(path[1:], value)
        return replace(self, fields={**self.fields, path[0]: inner})

    def text(self) -> str:
        """The constant, without its type."""
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
