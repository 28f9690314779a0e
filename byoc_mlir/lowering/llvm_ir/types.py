"""Types as LLVM assembly spells them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerType,
    Signedness,
    VectorType,
)
from xdsl.dialects.llvm import (
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute

from byoc_mlir.errors import CompilationError

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "half",
    BFloat16Type: "bfloat",
    Float32Type: "float",
    Float64Type: "double",
}
_FLOAT_SUFFIXES: dict[type[Attribute], str] = {
    Float16Type: "f16",
    BFloat16Type: "bf16",
    Float32Type: "f32",
    Float64Type: "f64",
}


@cache
def type_text(type_: Attribute) -> str:
    """The type in LLVM assembly. Raises `CompilationError` when LLVM has no such type."""
    match type_:
        case IntegerType(signedness=signedness) if signedness.data == Signedness.SIGNLESS:
            return f"i{type_.width.data}"
        case LLVMPointerType(addr_space=IntAttr(data=0)):
            return "ptr"
        case LLVMPointerType(addr_space=IntAttr(data=space)):
            return f"ptr addrspace({space})"
        case LLVMPointerType():
            return "ptr"
        case LLVMVoidType():
            return "void"
        case LLVMArrayType():
            return f"[{type_.size.data} x {type_text(type_.type)}]"
        case LLVMStructType():
            fields = _listed(type_.types.data)
            return f"{{ {fields} }}" if fields else "{}"
        case LLVMFunctionType():
            inputs = _listed(type_.inputs.data)
            separator = ", " if inputs else ""
            variadic = f"{separator}..." if type_.is_variadic else ""
            return f"{type_text(type_.output)} ({inputs}{variadic})"
        case VectorType() if type_.get_num_dims() == 1 and type_.get_num_scalable_dims() == 0:
            return f"<{type_.get_shape()[0]} x {type_text(type_.element_type)}>"
        case _ if type(type_) in _FLOATS:
            return _FLOATS[type(type_)]
        case _:
            raise CompilationError(f"llvm-ir: type {type_} does not exist in LLVM")


@cache
def intrinsic_suffix(type_: Attribute) -> str:
    """The name part by which an overloaded intrinsic tells this type."""
    match type_:
        case IntegerType():
            return f"i{type_.width.data}"
        case LLVMPointerType(addr_space=IntAttr(data=space)):
            return f"p{space}"
        case LLVMPointerType():
            return "p0"
        case VectorType():
            return f"v{type_.get_shape()[0]}{intrinsic_suffix(type_.element_type)}"
        case _ if type(type_) in _FLOAT_SUFFIXES:
            return _FLOAT_SUFFIXES[type(type_)]
        case _:
            raise CompilationError(f"llvm-ir: no intrinsic is overloaded on type {type_}")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(type_text(type_) for type_ in types)
