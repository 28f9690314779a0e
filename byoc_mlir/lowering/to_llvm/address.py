"""Addresses of memref elements: `llvm.getelementptr` with one linear i64 index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels import ops
from byoc_mlir.kernels.ops import Index
from byoc_mlir.lowering.to_llvm.emitter import Emitter
from byoc_mlir.lowering.to_llvm.types import static_strides, storage_type

_LARGEST_CONSTANT_INDEX = 2**31 - 1


def element_address(
    base: SSAValue, type_: MemRefType, indices: Sequence[SSAValue], emitter: Emitter
) -> SSAValue:
    """The address of `base[indices]`, both as the source op has them."""
    lowered = [_known_or_lowered(index, emitter) for index in indices]
    return strided_address(
        emitter[base], storage_type(type_.element_type), lowered, static_strides(type_), emitter
    )


def strided_address(
    pointer: SSAValue,
    element: Attribute,
    indices: Sequence[Index],
    strides: Sequence[int],
    emitter: Emitter,
) -> SSAValue:
    """The address of the element at the sum of `index * stride` over all dimensions."""
    constant = 0
    linear: SSAValue | None = None
    for index, stride in zip(indices, strides, strict=True):
        if isinstance(index, int):
            constant += index * stride
            continue
        term = _scaled(index, stride, emitter)
        linear = term if linear is None else _add(linear, term, emitter)
    if linear is None:
        return offset_address(pointer, element, constant, emitter)
    if constant:
        linear = _add(linear, emitter.constant(constant), emitter)
    return offset_address(pointer, element, linear, emitter)


def offset_address(
    pointer: SSAValue, element: Attribute, offset: Index, emitter: Emitter
) -> SSAValue:
    """The address `offset` elements after `pointer`."""
    if offset == 0:
        return pointer
    if isinstance(offset, int) and abs(offset) > _LARGEST_CONSTANT_INDEX:
        offset = emitter.constant(offset)
    return emitter.emit(ops.offset(pointer, offset, element))


def _known_or_lowered(index: SSAValue, emitter: Emitter) -> Index:
    if isinstance(index.owner, arith.ConstantOp) and isinstance(index.owner.value, IntegerAttr):
        return index.owner.value.value.data
    return emitter[index]


def _scaled(index: SSAValue, stride: int, emitter: Emitter) -> SSAValue:
    if stride == 1:
        return index
    return emitter.emit(ops.multiply_no_wrap(index, emitter.constant(stride)))


def _add(lhs: SSAValue, rhs: SSAValue, emitter: Emitter) -> SSAValue:
    return emitter.emit(ops.add_no_wrap(lhs, rhs))
