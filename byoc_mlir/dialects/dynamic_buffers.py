"""Buffers of symbolic size: ops of the `host` dialect for features that `memref` lacks.

A buffer names its sizes in its layout, as a tensor does in its encoding: `memref<?x4xf32,
#host.layout<#relay.shape<[n, 4]>, #relay.shape<[4, 1]>, #relay.shape<[0]>>>`. Ops on it need no
operands for sizes; `host.size` returns one as a value. A buffer of static size is a plain memref.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefLayoutAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.shape import ShapeAttr, is_symbolic
from byoc_mlir.dims import Dim, Size

_INDEX = IndexType()


@irdl_attr_definition
class LayoutAttr(MemRefLayoutAttr, ParametrizedAttribute):
    """Layout `#host.layout<sizes, strides, [offset]>` of a memref, in elements."""

    name = "host.layout"

    sizes: ShapeAttr
    strides: ShapeAttr
    offset: ShapeAttr

    def verify(self) -> None:
        if len(self.sizes.data) != len(self.strides.data) or len(self.offset.data) != 1:
            raise VerifyException(
                f"{self.name} has a stride for each size and one offset, found {self.sizes},"
                f" {self.strides} and {self.offset}"
            )

    def get_affine_map(self) -> AffineMap:
        """Returns the map from indices to an element's offset; the strides and the buffer's offset
        are the map's symbols.
        """
        rank = len(self.sizes.data)
        total: AffineExpr = AffineConstantExpr(0)
        for axis in range(rank):
            total = total + AffineDimExpr(axis) * AffineSymExpr(axis)
        return AffineMap(rank, rank + 1, (total + AffineSymExpr(rank),))

    def get_strides(self) -> Sequence[int | None]:
        return [None if isinstance(stride, Dim) else stride for stride in self.strides.data]

    def get_offset(self) -> int | None:
        (offset,) = self.offset.data
        return None if isinstance(offset, Dim) else offset


@lru_cache(maxsize=4096)
def row_major(sizes: tuple[Size, ...]) -> tuple[Size, ...]:
    """Returns the strides of a dense buffer, the last axis innermost."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


@lru_cache(maxsize=4096)
def dense_buffer(element: Attribute, sizes: tuple[Size, ...]) -> MemRefType:
    """Returns the type of a dense buffer; cached, as xDSL's construction of types is slow."""
    if is_symbolic(sizes):
        return strided_buffer(element, sizes, row_major(sizes), 0)
    return MemRefType(element, cast(tuple[int, ...], sizes))


def strided_buffer(
    element: Attribute, sizes: Sequence[Size], strides: Sequence[Size], offset: Size
) -> MemRefType:
    """Returns the type of a buffer that is part of another one, with the given sizes, strides and
    offset.
    """
    if is_symbolic((*sizes, *strides, offset)):
        shape = [DYNAMIC_INDEX if isinstance(size, Dim) else size for size in sizes]
        parts = [ShapeAttr(tuple(part)) for part in (sizes, strides, (offset,))]
        return MemRefType(element, shape, LayoutAttr(*parts))
    numbers = cast(Sequence[int], strides)
    is_dense = offset == 0 and tuple(strides) == row_major(tuple(sizes))
    layout = NoneAttr() if is_dense else StridedLayoutAttr(numbers, cast(int, offset))
    return MemRefType(element, cast(Sequence[int], sizes), layout)


def buffer_sizes(type_: MemRefType) -> tuple[Size, ...]:
    """Returns the sizes of a buffer."""
    layout = type_.layout
    return layout.sizes.data if isinstance(layout, LayoutAttr) else type_.get_shape()


def buffer_strides(type_: MemRefType) -> tuple[Size, ...]:
    """Returns the strides of a buffer, in elements."""
    layout = type_.layout
    if isinstance(layout, LayoutAttr):
        return layout.strides.data
    strides = type_.get_strides()
    assert strides is not None
    return tuple(stride for stride in strides if stride is not None)


def buffer_offset(type_: MemRefType) -> Size:
    """Returns the offset of a buffer, in elements, in the buffer that contains it."""
    layout = type_.layout
    if isinstance(layout, LayoutAttr):
        return layout.offset.data[0]
    offset = type_.get_offset()
    assert offset is not None
    return offset


@irdl_op_definition
class SizeOp(IRDLOperation):
    """Size as a value: `%0 = host.size #relay.shape<[2*n]> : index`."""

    name = "host.size"
    sizes = prop_def(ShapeAttr)
    value = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$sizes attr-dict `:` type($value)"

    def __init__(self, size: Size):
        properties = {"sizes": ShapeAttr((size,))}
        Operation.__init__(self, result_types=[_INDEX], properties=properties)  # xDSL's own is slow

    @property
    def size(self) -> Size:
        """Returns the symbolic size."""
        return self.sizes.data[0]

    def verify_(self) -> None:
        if len(self.sizes.data) != 1:
            raise VerifyException(f"{self.name} gives one size, found {self.sizes}")


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Allocation of memory: `%0 = host.alloc : memref<?xf32, #host.layout<…>>`."""

    name = "host.alloc"
    memref = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($memref)"

    def __init__(self, type_: MemRefType):
        super().__init__(result_types=[type_])


@irdl_op_definition
class ViewOp(IRDLOperation):
    """View of a buffer with the sizes, strides and offset that the result type names.

    ```mlir
    %1 = host.view %0 : memref<?x4xf32, #host.layout<…>> to memref<?xf32, #host.layout<…>>
    ```
    """

    name = "host.view"
    source = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, type_: MemRefType):
        super().__init__(operands=[source], result_types=[type_])


@irdl_op_definition
class PlaceOp(IRDLOperation):
    """Buffer at a byte offset of the arena.

    ```mlir
    %1 = host.place %arena[%offset] : memref<?xi8> to memref<?xf32, #host.layout<…>>
    ```
    """

    name = "host.place"
    source = operand_def(MemRefType)
    offset = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source `[` $offset `]` attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, offset: SSAValue, type_: MemRefType):
        super().__init__(operands=[source, offset], result_types=[type_])


Alloc: TypeAlias = memref.AllocOp | AllocOp
"""Allocation of static or symbolic size."""

View: TypeAlias = memref.ReinterpretCastOp | ViewOp
"""View of static or symbolic size."""
