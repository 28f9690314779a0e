"""Conversion of the source dialects' types to the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
    i8,
    i16,
    i64,
)
from xdsl.dialects.llvm import (
    LLVMArrayType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

POINTER = LLVMPointerType()

_UNCHANGED = (
    Float16Type,
    Float32Type,
    Float64Type,
    LLVMPointerType,
    LLVMArrayType,
    LLVMStructType,
    LLVMVoidType,
)
_BYTE_WIDTHS: dict[type[Attribute], int] = {
    IndexType: 8,
    BFloat16Type: 2,
    Float16Type: 2,
    Float32Type: 4,
    Float64Type: 8,
}


@lru_cache(maxsize=4096)
def convert_type(type_: Attribute) -> Attribute:
    """Returns the type of a value in the `llvm` dialect.

    `index` becomes i64, integers become signless, `bf16` becomes an i16 with its bits, and a memref
    becomes a pointer to the first element of the view.

    Raises:
        PassFailedException: a type has no counterpart.
    """
    match type_:
        case IntegerType():
            return IntegerType(type_.width.data)
        case IndexType():
            return i64
        case BFloat16Type():
            return i16
        case MemRefType():
            return POINTER
        case VectorType() if type_.get_num_dims() == 1:
            return VectorType(convert_type(type_.element_type), type_.get_shape())
        case _ if isinstance(type_, _UNCHANGED):
            return type_
        case _:
            raise PassFailedException(
                f"type {type_} has no counterpart in the llvm dialect; accepted are integers, "
                "index, f16, bf16, f32, f64, memrefs, vectors of one dimension and llvm types"
            )


def storage_type(element: Attribute) -> Attribute:
    """Returns the type of an element in memory: like `convert_type`, but a bool takes a byte."""
    converted = convert_type(element)
    return i8 if converted == i1 else converted


def byte_width(element: Attribute) -> int:
    """Returns the bytes of one element of a memref."""
    if isinstance(element, IntegerType):
        return (element.width.data + 7) // 8
    if type(element) not in _BYTE_WIDTHS:
        raise PassFailedException(f"a memref of {element} has no defined element size")
    return _BYTE_WIDTHS[type(element)]


def buffer_bytes(type_: MemRefType) -> int:
    """Returns the bytes of the elements of a memref of static sizes."""
    return prod(type_.get_shape()) * byte_width(type_.element_type)


@lru_cache(maxsize=4096)
def static_strides(type_: MemRefType) -> Sequence[int]:
    """Returns the strides of a memref, in elements.

    Raises:
        PassFailedException: a stride is not known statically.
    """
    strides = type_.get_strides()
    if strides is None or any(stride is None for stride in strides):
        raise PassFailedException(
            f"{type_} has a layout that is not known statically; only the identity and "
            "strided<[...]> with static strides can be lowered to llvm"
        )
    return [stride for stride in strides if stride is not None]


def is_contiguous(type_: MemRefType) -> bool:
    """True if the view's elements are contiguous, in row-major order."""
    expected = 1
    strides = static_strides(type_)
    for size, stride in zip(reversed(type_.get_shape()), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
