"""Descriptions of oneDNN C API calls, built once and used twice.

`objects.py` executes them at compile time, for queries and measurements; `codegen/` generates LLVM
IR from them. An argument of a call is a Python value:

| value | C |
| --- | --- |
| `int` | `int`, an enum or flags |
| `Size(n)` | `dnnl_dim_t` |
| `float` | `float` |
| `tuple` of `int` | `const dnnl_dims_t` |
| `MemoryDescriptor`, `None` | `const_dnnl_memory_desc_t`, `NULL` |
| `Descriptors` | `const const_dnnl_memory_desc_t *` |
| `Attributes` | `const_dnnl_primitive_attr_t` |
| `ENGINE` | `dnnl_engine_t` |
| `NULL` | a pointer that is `NULL` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.onednn.constants import DataType


@dataclass(frozen=True)
class MemoryDescriptor:
    """`dnnl_memory_desc_t`: a shape and a memory layout.

    `strides` describe views that no layout string describes; otherwise, `layout` is decisive.
    """

    dims: tuple[int, ...]
    layout: str
    strides: tuple[int, ...] | None = None
    data_type: DataType = DataType.F32

    @staticmethod
    def plain(dims: tuple[int, ...], data_type: DataType = DataType.F32) -> MemoryDescriptor:
        """Returns the row-major descriptor."""
        return MemoryDescriptor(dims, layouts.plain(len(dims)), data_type=data_type)

    @property
    def byte_size(self) -> int:
        """Returns the bytes of the tensor; the layout must not be `any`."""
        return layouts.byte_size(self.dims, self.layout, element_bytes(self.data_type))


_BYTES: Mapping[DataType, int] = {
    DataType.BF16: 2,
    DataType.F32: 4,
    DataType.S32: 4,
    DataType.S8: 1,
    DataType.U8: 1,
}


def element_bytes(data_type: DataType) -> int:
    """Returns the bytes of an element."""
    return _BYTES[data_type]


@dataclass(frozen=True)
class Sum:
    """A post-op that adds the old contents of the destination, times a factor."""

    factor: float = 1.0

    @property
    def call(self) -> LibraryCall:
        """Returns the call that appends the post-op to a chain."""
        return LibraryCall("dnnl_post_ops_append_sum", (self.factor, 0, DataType.UNDEFINED))


@dataclass(frozen=True)
class Eltwise:
    """A post-op that applies a function to each element."""

    algorithm: int
    alpha: float
    beta: float

    @property
    def call(self) -> LibraryCall:
        """Returns the call that appends the post-op to a chain."""
        return LibraryCall("dnnl_post_ops_append_eltwise", (self.algorithm, self.alpha, self.beta))


@dataclass(frozen=True)
class Binary:
    """A post-op that combines each element with one of another tensor, with broadcasting."""

    algorithm: int
    other: MemoryDescriptor

    @property
    def call(self) -> LibraryCall:
        """Returns the call that appends the post-op to a chain."""
        return LibraryCall("dnnl_post_ops_append_binary", (self.algorithm, self.other))


@dataclass(frozen=True)
class Prelu:
    """A post-op that multiplies negative elements by slopes; a bit of `mask` marks a dim of the
    slopes.
    """

    mask: int

    @property
    def call(self) -> LibraryCall:
        """Returns the call that appends the post-op to a chain."""
        return LibraryCall("dnnl_post_ops_append_prelu", (self.mask,))


PostOp: TypeAlias = Sum | Eltwise | Binary | Prelu


@dataclass(frozen=True)
class Attributes:
    """Primitive attributes: post-ops, and always a scratchpad that the caller provides.

    `scales` and `zero_points` list arguments that have them, each with a mask: a set bit marks a
    dimension along which there is one value for each index.
    """

    post_ops: tuple[PostOp, ...] = ()
    scales: tuple[tuple[int, int], ...] = ()
    zero_points: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Size:
    """A 64-bit number."""

    value: int


@dataclass(frozen=True)
class Descriptors:
    """An array of memory descriptors."""

    items: tuple[MemoryDescriptor, ...]


class Special(Enum):
    """Arguments without a value of their own."""

    ENGINE = "engine"
    NULL = "null"


ENGINE, NULL = Special.ENGINE, Special.NULL

Argument: TypeAlias = (
    int
    | float
    | Size
    | tuple[int, ...]
    | MemoryDescriptor
    | Descriptors
    | Attributes
    | Special
    | None
)


@dataclass(frozen=True)
class LibraryCall:
    """A function of the library, and its arguments after the first one."""

    function: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class PrimitiveCall(LibraryCall):
    """The call that creates a primitive descriptor; the first argument receives it."""

    @property
    def kind(self) -> str:
        """Returns the kind of primitive, such as `convolution_forward`."""
        return self.function.removeprefix("dnnl_").removesuffix("_primitive_desc_create")
