"""Types and constants in LLVM assembly."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
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

from byoc_mlir.dialects.llvm_ext import X86AmxType
from byoc_mlir.errors import CompilationError

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "half",
    BFloat16Type: "bfloat",
    Float32Type: "float",
    Float64Type: "double",
}


@cache
def type_text(type_: Attribute) -> str:
    """Returns a type in LLVM assembly.

    Raises:
        CompilationError: LLVM has no such type.
    """
    match type_:
        case IntegerType(signedness=signedness) if signedness.data == Signedness.SIGNLESS:
            return f"i{type_.width.data}"
        case LLVMPointerType(addr_space=IntAttr(data=space)) if space:
            return f"ptr addrspace({space})"
        case LLVMPointerType():
            return "ptr"
        case LLVMVoidType():
            return "void"
        case X86AmxType():
            return "x86_amx"
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
    """Returns the suffix for a type in the name of an overloaded intrinsic."""
    match type_:
        case IntegerType():
            return f"i{type_.width.data}"
        case LLVMPointerType(addr_space=IntAttr(data=space)):
            return f"p{space}"
        case LLVMPointerType():
            return "p0"
        case VectorType():
            return f"v{type_.get_shape()[0]}{intrinsic_suffix(type_.element_type)}"
        case _ if type(type_) in _FLOATS:
            return str(type_)
        case _:
            raise CompilationError(f"llvm-ir: no intrinsic is overloaded on type {type_}")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(type_text(type_) for type_ in types)


_PRINTABLE = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
_ESCAPED = [chr(byte) if byte in _PRINTABLE else f"\\{byte:02X}" for byte in range(256)]


def constant_text(value: Attribute, type_: Attribute) -> str:
    """Returns a constant without its type.

    Raises:
        CompilationError: LLVM cannot express the value.
    """
    match value:
        case IntegerAttr() if isinstance(type_, IntegerType):
            return _integer_text(value.value.data, type_)
        case FloatAttr():
            return _float_text(value.value.data, type_)
        case DenseIntOrFPElementsAttr() if isinstance(type_, VectorType):
            return _vector_text(value, type_)
        case _:
            raise CompilationError(f"llvm-ir: constant {value} of type {type_} is not supported")


def quoted(data: bytes) -> str:
    """Returns the bytes in double quotes; characters that are not printable ASCII are escaped."""
    return '"' + "".join([_ESCAPED[byte] for byte in data]) + '"'


def initialiser(value: Attribute, type_: Attribute) -> str:
    """Returns the type and the initial value of a global.

    Arrays of numbers are written as byte strings, which are an order of magnitude shorter than
    lists of numbers. The global's type then differs, but its users do not depend on it, since
    pointers have no element type.
    """
    if isinstance(value, StringAttr):
        return _bytes_text(value.data.encode())
    if isinstance(value, DenseIntOrFPElementsAttr) and isinstance(type_, LLVMArrayType):
        return _bytes_text(_element_bytes(value))
    return f"{type_text(type_)} {constant_text(value, type_)}"


def _bytes_text(data: bytes) -> str:
    if not data.strip(b"\0"):
        return f"[{len(data)} x i8] zeroinitializer"
    return f"[{len(data)} x i8] c{quoted(data)}"


def _element_bytes(value: DenseIntOrFPElementsAttr) -> bytes:
    """Returns the bytes of all elements, even if the attribute is a splat."""
    data = value.data.data
    count = math.prod(value.get_shape())
    size = value.get_element_type().compile_time_size
    return data * count if len(data) == size else data


def _integer_text(value: int, type_: IntegerType) -> str:
    if type_.width.data == 1:
        return "true" if value else "false"
    return str(value)


def _float_text(value: float, type_: Attribute) -> str:
    """Returns the exact bits of a float in hexadecimal; f32 and f64 are both written as a
    double.
    """
    if isinstance(type_, Float16Type):
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if isinstance(type_, BFloat16Type):
        return f"0xR{struct.unpack('<I', struct.pack('<f', value))[0] >> 16:04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _vector_text(value: DenseIntOrFPElementsAttr, type_: VectorType) -> str:
    element = type_.element_type
    data = _element_bytes(value)
    numbers = value.get_element_type().unpack(data, type_.get_shape()[0])
    elements = ", ".join(f"{type_text(element)} {_number_text(n, element)}" for n in numbers)
    return f"<{elements}>"


def _number_text(number: object, type_: Attribute) -> str:
    if isinstance(number, int) and isinstance(type_, IntegerType):
        return _integer_text(number, type_)
    if isinstance(number, float):
        return _float_text(number, type_)
    raise CompilationError(f"llvm-ir: {number} is no element of a vector of {type_}")
