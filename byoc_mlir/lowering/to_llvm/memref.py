"""Lowerings to `llvm` of the `memref` ops that the compiler emits.

A lowered memref is a bare pointer to the first element of the view. Shape, strides and offset are
static, and are known from the type. A bool takes one byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    MemRefType,
    UnitAttr,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.dialects import host, llvm_ext
from byoc_mlir.dialects.dynamic_buffers import PlaceOp, ViewOp, buffer_offset
from byoc_mlir.kernels import ops
from byoc_mlir.kernels.ops import Index
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings, integer_constant
from byoc_mlir.lowering.to_llvm.index_math import bound
from byoc_mlir.lowering.to_llvm.types import (
    POINTER,
    buffer_bytes,
    byte_width,
    convert_type,
    is_contiguous,
    static_strides,
    storage_type,
)

_LARGEST_CONSTANT_INDEX = 2**31 - 1


def element_address(
    base: SSAValue, type_: MemRefType, indices: Sequence[SSAValue], emitter: Emitter
) -> SSAValue:
    """Emits the address of `base[indices]`, for values of the source IR."""
    constant = 0
    linear: SSAValue | None = None
    for index, stride in zip(map(bound, indices), static_strides(type_), strict=True):
        if isinstance(index, int):
            constant += index * stride
            continue
        term = emitter[index]
        if stride != 1:
            term = emitter.emit(ops.multiply_no_wrap(term, emitter.constant(stride)))
        linear = term if linear is None else emitter.emit(ops.add_no_wrap(linear, term))
    if linear is not None and constant:
        linear = emitter.emit(ops.add_no_wrap(linear, emitter.constant(constant)))
    offset = constant if linear is None else linear
    return offset_address(emitter[base], storage_type(type_.element_type), offset, emitter)


def offset_address(
    pointer: SSAValue, element: Attribute, offset: Index, emitter: Emitter
) -> SSAValue:
    """Emits the address `offset` elements after `pointer`."""
    if offset == 0:
        return pointer
    if isinstance(offset, int) and abs(offset) > _LARGEST_CONSTANT_INDEX:
        offset = emitter.constant(offset)
    return emitter.emit(ops.offset(pointer, offset, element))


_TO_READ, _NEAR, _DATA = 0, 3, 1
"""Arguments of `llvm.prefetch`: for reading, for all cache levels, data."""


def _load(op: memref.LoadOp, emitter: Emitter) -> Sequence[SSAValue]:
    type_ = memref_type(op.memref)
    address = element_address(op.memref, type_, op.indices, emitter)
    stored, wanted = storage_type(type_.element_type), convert_type(type_.element_type)
    value = emitter.emit(ops.load(address, stored))
    if stored == wanted:
        return [value]
    return [emitter.emit(ops.compare("ne", value, emitter.constant(0, i8)))]


def _store(op: memref.StoreOp, emitter: Emitter) -> Sequence[SSAValue]:
    type_ = memref_type(op.memref)
    address = element_address(op.memref, type_, op.indices, emitter)
    value = emitter[op.value]
    if value.type == i1:
        value = emitter.emit(llvm.ZExtOp(value, i8))
    nontemporal = bool(op.nontemporal.value.data)
    emitter.add(ops.store(value, address, nontemporal=nontemporal))
    return ()


def _reinterpret_cast(op: memref.ReinterpretCastOp, emitter: Emitter) -> Sequence[SSAValue]:
    (offset,) = op.static_offsets.get_values()
    source_type = memref_type(op.source)
    if offset == DYNAMIC_INDEX or source_type.get_offset() not in (0, None):
        raise PassFailedException(
            f"memref.reinterpret_cast from {source_type} with a run-time offset, or of a view with "
            "an offset, cannot be lowered; a view's pointer does not know where its buffer starts"
        )
    static_strides(memref_type(op.result))
    element = storage_type(source_type.element_type)
    return [offset_address(emitter[op.source], element, int(offset), emitter)]


_BYTES = MemRefType(i8, [DYNAMIC_INDEX])


def _place(op: PlaceOp, emitter: Emitter) -> Sequence[SSAValue]:
    return [element_address(op.source, _BYTES, [op.offset], emitter)]


def _seen(op: ViewOp, emitter: Emitter) -> Sequence[SSAValue]:
    type_ = memref_type(op.result)
    if buffer_offset(type_) != 0:
        raise PassFailedException(f"{op.name} to {type_}: only views without offset can be lowered")
    return [emitter[op.source]]


def _cast(op: memref.CastOp, emitter: Emitter) -> Sequence[SSAValue]:
    static_strides(memref_type(op.dest))
    return [emitter[op.source]]


def _alloca(op: memref.AllocaOp, emitter: Emitter) -> Sequence[SSAValue]:
    type_ = memref_type(op.memref)
    if op.dynamic_sizes or op.symbol_operands:
        raise PassFailedException(f"memref.alloca of {type_} has a run-time size; make it static")
    size = emitter.hoist(integer_constant(prod(type_.get_shape())))
    alignment = op.alignment.value.data if op.alignment else 0
    element = storage_type(type_.element_type)
    return [emitter.hoist(llvm.AllocaOp(size, element, alignment=max(alignment, ARENA_ALIGNMENT)))]


def _copy(op: memref.CopyOp, emitter: Emitter) -> Sequence[SSAValue]:
    source_type, target_type = memref_type(op.source), memref_type(op.destination)
    if not (_is_copied_whole(source_type) and _is_copied_whole(target_type)):
        raise PassFailedException(
            f"memref.copy from {source_type} to {target_type} cannot be lowered; accepted are"
            " contiguous memrefs of static shapes"
        )
    length = buffer_bytes(source_type)
    source, target = emitter[op.source], emitter[op.destination]
    emitter.add(llvm_ext.MemcpyOp(target, source, emitter.constant(length)))
    return ()


def _copy_apart(op: host.CopyApartOp, emitter: Emitter) -> Sequence[SSAValue]:
    source_type = memref_type(op.source)
    width = byte_width(source_type.element_type)
    if op.elements is None:
        length = emitter.constant(prod(source_type.get_shape()) * width)
    else:
        length = emitter.emit(llvm.MulOp(emitter[op.elements], emitter.constant(width)))
    source, target = emitter[op.source], emitter[op.destination]
    begin, other = (emitter.emit(llvm.PtrToIntOp(pointer, i64)) for pointer in (source, target))
    is_same = emitter.emit(ops.compare("eq", begin, other))
    size = emitter.emit(llvm.SelectOp(is_same, emitter.constant(0), length))
    emitter.add(llvm_ext.MemcpyOp(target, source, size))
    return ()


def _is_copied_whole(type_: MemRefType) -> bool:
    return type_.has_static_shape() and is_contiguous(type_)


def _get_global(op: memref.GetGlobalOp, emitter: Emitter) -> Sequence[SSAValue]:
    return [emitter.emit(llvm.AddressOfOp(op.name_, POINTER))]


def lower_global(op: memref.GlobalOp) -> llvm.GlobalOp:
    """Returns the `llvm.mlir.global` of a small constant or an uninitialised static buffer.

    A public constant without content is a declaration, which the linker resolves.
    """
    type_ = op.type
    array = llvm.LLVMArrayType(prod(type_.get_shape()), storage_type(type_.element_type))
    is_private = op.sym_visibility.data == "private"
    value = op.initial_value
    lowered = llvm.GlobalOp(
        array,
        op.sym_name,
        "internal" if is_private else "external",
        constant=op.constant is not None,
        value=value if isinstance(value, DenseIntOrFPElementsAttr) else None,
        alignment=op.alignment.value.data if op.alignment else ARENA_ALIGNMENT,
        body=None,
    )
    defined_elsewhere = op.constant is not None and not is_private
    if isinstance(value, UnitAttr) and not defined_elsewhere:
        lowered.linkage = llvm.LinkageAttr("internal" if is_private else "common")
    lowered.location = op.location
    return lowered


def _planned_before(op: memref.AllocOp, _: Emitter) -> Sequence[SSAValue]:
    type_ = op.memref.type
    raise PassFailedException(
        f"{op.name} of {type_} is left; buffers are planned before the lowering to llvm"
    )


def memref_type(value: SSAValue) -> MemRefType:
    """Returns the ranked memref type of a value of the source IR."""
    if not isinstance(value.type, MemRefType):
        raise PassFailedException(f"expected a ranked memref, got {value.type}")
    return value.type


def _prefetch(op: host.PrefetchOp, emitter: Emitter) -> Sequence[SSAValue]:
    element = storage_type(memref_type(op.buffer).element_type)
    index = [llvm.GEP_USE_SSA_VAL]  # not inbounds: the address may be behind the end
    address = llvm.GEPOp(emitter[op.buffer], index, element, ssa_indices=[emitter[op.index]])
    how = [emitter.constant(value, i32) for value in (_TO_READ, _NEAR, _DATA)]
    pointer = emitter.emit(address)
    emitter.add(llvm.CallIntrinsicOp("llvm.prefetch.p0", [pointer, *how], []))
    return []


LOWERINGS: Lowerings = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.ReinterpretCastOp: _reinterpret_cast,
    memref.CastOp: _cast,
    memref.AllocaOp: _alloca,
    memref.CopyOp: _copy,
    memref.GetGlobalOp: _get_global,
    memref.AllocOp: _planned_before,
    host.CopyApartOp: _copy_apart,
    host.PrefetchOp: _prefetch,
    PlaceOp: _place,
    ViewOp: _seen,
}
