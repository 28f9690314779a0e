"""Lowerings to `llvm` of the ops of `vector` and `x86vector` that the compiler emits, for
one-dimensional vectors.

An op of `x86vector` becomes an instruction if the processor has it, else equivalent arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerType,
    VectorType,
    bf16,
    f32,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host, llvm_ext
from byoc_mlir.dialects.x86vector import DotBF16Op
from byoc_mlir.kernels import ops
from byoc_mlir.kernels.ops import float_arithmetic, i32_array, shuffle, vector_type
from byoc_mlir.lowering.to_llvm.arith import bitcast, fastmath
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings, float_constant
from byoc_mlir.lowering.to_llvm.memref import element_address, memref_type
from byoc_mlir.lowering.to_llvm.types import byte_width, convert_type
from byoc_mlir.runtime.system.cpu import target_cpu

_DOT = "llvm.x86.avx512bf16.dpbf16ps.512"
_LANES = 16
"""Number of sums of the dot product instruction."""

_HALF = 16
"""Bits of a `bf16`: the upper ones of the `f32` with the same value."""

_UPPER = 0xFFFF0000
_CONTRACT = llvm.FastMathAttr([FastMathFlag.ALLOW_CONTRACT])


def _dot(op: DotBF16Op, emitter: Emitter) -> Sequence[SSAValue]:
    sums = emitter[op.src]
    assert isinstance(sums.type, VectorType)
    (lanes,) = sums.type.get_shape()
    factors = [emitter[op.a], emitter[op.b]]
    if lanes == _LANES and "avx512_bf16" in target_cpu().features:
        type_ = VectorType(bf16, [2 * lanes])
        pairs = [emitter.emit(llvm.BitcastOp(value, type_)) for value in factors]
        return [emitter.emit(llvm.CallIntrinsicOp(_DOT, [sums, *pairs], [sums.type]))]
    words = VectorType(i32, [lanes])
    numbers = [_wide(emitter.emit(llvm.BitcastOp(one, words)), words, emitter) for one in factors]
    for left, right in zip(*numbers, strict=True):
        product = emitter.emit(float_arithmetic(llvm.FMulOp, left, right, _CONTRACT))
        sums = emitter.emit(float_arithmetic(llvm.FAddOp, sums, product, _CONTRACT))
    return [sums]


def _wide(
    words: SSAValue, type_: VectorType[IntegerType], emitter: Emitter
) -> tuple[SSAValue, SSAValue]:
    """Emits the lower and the upper `bf16` of each 32-bit word as `f32`."""
    lower = llvm.ShlOp(words, emitter.emit(_splat(_HALF, type_)))
    upper = llvm.AndOp(words, emitter.emit(_splat(_UPPER, type_)))
    return _float(lower, emitter), _float(upper, emitter)


def _float(bits: Operation, emitter: Emitter) -> SSAValue:
    value = emitter.emit(bits)
    assert isinstance(value.type, VectorType)
    return emitter.emit(llvm.BitcastOp(value, VectorType(f32, value.type.get_shape())))


def _splat(value: int, type_: VectorType[IntegerType]) -> llvm.ConstantOp:
    return llvm.ConstantOp(DenseIntOrFPElementsAttr.from_list(type_, [value]), type_)


def _row(
    op: vector.LoadOp | vector.StoreOp | vector.MaskedLoadOp | vector.MaskedStoreOp,
    emitter: Emitter,
) -> tuple[SSAValue, int]:
    """Emits the address of the elements that an op loads or stores; returns it with its alignment.

    Raises:
        PassFailedException: the elements are not contiguous.
    """
    type_ = memref_type(op.base)
    strides = type_.get_strides()
    if not strides or strides[-1] != 1 or type_.element_type == i1:
        raise PassFailedException(
            f"{op.name} on {type_}: the last dimension must have stride 1, and elements not be i1"
        )
    return element_address(op.base, type_, op.indices, emitter), byte_width(type_.element_type)


def _load(op: vector.LoadOp, emitter: Emitter) -> Sequence[SSAValue]:
    address, alignment = _row(op, emitter)
    return [emitter.emit(ops.load(address, convert_type(op.result.type), alignment))]


def _store(op: vector.StoreOp, emitter: Emitter) -> Sequence[SSAValue]:
    address, alignment = _row(op, emitter)
    emitter.add(ops.store(emitter[op.vector], address, alignment))
    return ()


def _masked_load(op: vector.MaskedLoadOp, emitter: Emitter) -> Sequence[SSAValue]:
    address, alignment = _row(op, emitter)
    mask, pass_thru = emitter[op.mask], emitter[op.pass_thru]
    return [emitter.emit(llvm_ext.MaskedLoadOp(address, mask, pass_thru, alignment))]


def _masked_store(op: vector.MaskedStoreOp, emitter: Emitter) -> Sequence[SSAValue]:
    address, alignment = _row(op, emitter)
    value, mask = emitter[op.value_to_store], emitter[op.mask]
    emitter.add(llvm.MaskedStoreOp(value, address, mask, alignment))
    return ()


def _broadcast(op: vector.BroadcastOp, emitter: Emitter) -> Sequence[SSAValue]:
    source = emitter[op.source]
    type_ = _flat(op.vector.type)
    if source.type == type_:
        return [source]
    (lanes,) = type_.get_shape()
    if not isinstance(source.type, VectorType):
        return [splat(source, lanes, emitter)]
    if source.type.get_shape() != (1,):
        raise PassFailedException(f"vector.broadcast of {op.source.type} is not of one element")
    return [emitter.emit(shuffle(source, source, (0,) * lanes))]


def splat(scalar: SSAValue, lanes: int, emitter: Emitter) -> SSAValue:
    """Emits a vector with the scalar in every lane."""
    type_, mask = vector_type(scalar.type, lanes), i32_array(*[0] * lanes)
    poison = emitter.emit(llvm_ext.PoisonOp.create(result_types=[type_]))
    operands = [poison, scalar, emitter.constant(0)]
    first = emitter.emit(llvm.InsertElementOp.create(operands=operands, result_types=[type_]))
    return emitter.emit(
        llvm.ShuffleVectorOp.create(
            operands=[first, poison], result_types=[type_], properties={"mask": mask}
        )
    )


def _extract(op: vector.ExtractOp, emitter: Emitter) -> Sequence[SSAValue]:
    _flat(op.vector.type)
    (static,) = op.static_position.get_values()
    is_known = static != DYNAMIC_INDEX
    position = emitter.constant(int(static)) if is_known else emitter[op.dynamic_position[0]]
    return [emitter.emit(llvm_ext.ExtractElementOp(emitter[op.vector], position))]


def _shuffle(op: vector.ShuffleOp, emitter: Emitter) -> Sequence[SSAValue]:
    mask = DenseArrayBase.from_list(i32, [int(lane) for lane in op.mask.get_values()])
    _flat(op.v1.type)
    first, second = emitter[op.v1], emitter[op.v2]
    type_ = convert_type(op.result.type)
    return [emitter.emit(llvm.ShuffleVectorOp(first, second, mask, type_))]


def _reduction(op: vector.ReductionOp, emitter: Emitter) -> Sequence[SSAValue]:
    _flat(op.vector.type)
    if op.kind.data is not vector.CombiningKindFlag.ADD or op.acc is not None:
        raise PassFailedException(
            f"{op.name} of kind {op.kind.data.value} cannot be lowered; "
            "accepted is add, of floats, without an accumulator"
        )
    zero = emitter.emit(float_constant(-0.0, op.dest.type))
    total = llvm.VectorReduceFAddOp(zero, emitter[op.vector], fastmath(op.fastmath))
    return [emitter.emit(total)]


def _create_mask(op: vector.CreateMaskOp, emitter: Emitter) -> Sequence[SSAValue]:
    (lanes,) = _flat(op.mask_vector.type).get_shape()
    type_ = VectorType(i64, [lanes])
    numbers = DenseIntOrFPElementsAttr.from_list(type_, list(range(lanes)))
    lane = emitter.emit(llvm.ConstantOp(numbers, type_))
    size = splat(emitter[op.mask_dim_sizes[0]], lanes, emitter)
    return [emitter.emit(ops.compare("slt", lane, size))]


_PAIR_DOTS = {
    4: ("ssse3", "llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
    8: ("avx2", "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
    16: ("avx512bw", "llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"),
}
"""Feature and instructions that add two products, of bytes and of `i16`, by 32-bit words."""

_VNNI = frozenset(["avx512_vnni", "avx_vnni"])


def _dot_integers(op: host.DotIntegersOp, emitter: Emitter) -> Sequence[SSAValue]:
    total = emitter[op.total]
    factors = [emitter[op.codes], emitter[op.numbers]]
    type_ = total.type
    assert isinstance(type_, VectorType)
    assert isinstance(op.codes.type, VectorType)
    if op.codes.type.element_type == i16 or type_.element_type == i16:
        return [_pairs_added(factors, total, emitter)]
    (lanes,) = type_.get_shape()
    if lanes in _PAIR_DOTS and not _VNNI.isdisjoint(target_cpu().features):
        name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        return [emitter.emit(llvm.CallIntrinsicOp(name, [total, *factors], [type_]))]
    narrow = VectorType(i16, [2 * lanes])
    sums = _pairs_added(factors, emitter.emit(_splat(0, narrow)), emitter)
    return [_pairs_added([sums, emitter.emit(_splat(1, narrow))], total, emitter)]


def _pairs_added(factors: Sequence[SSAValue], total: SSAValue, emitter: Emitter) -> SSAValue:
    """Emits the sums of two products of neighbouring lanes, of bytes as `i16` or of `i16` as `i32`,
    added to `total`.
    """
    type_ = total.type
    assert isinstance(type_, VectorType)
    (lanes,), are_bytes = type_.get_shape(), type_.element_type == i16
    feature, bytes_, words = _PAIR_DOTS.get(lanes // 2 if are_bytes else lanes, ("", "", ""))
    if feature in target_cpu().features:
        name = bytes_ if are_bytes else words
        found = emitter.emit(llvm.CallIntrinsicOp(name, factors, [type_]))
        return emitter.emit(llvm.AddOp(total, found))
    wide = VectorType(type_.element_type, [2 * lanes])
    codes = emitter.emit((llvm.ZExtOp if are_bytes else llvm.SExtOp)(factors[0], wide))
    products = emitter.emit(llvm.MulOp(codes, emitter.emit(llvm.SExtOp(factors[1], wide))))
    for first in range(2):
        mask = DenseArrayBase.from_list(i32, range(first, 2 * lanes, 2))
        part = emitter.emit(llvm.ShuffleVectorOp(products, products, mask, type_))
        total = emitter.emit(llvm.AddOp(total, part))
    return total


def _flat(type_: Attribute) -> VectorType:
    """Returns the type if it is a one-dimensional vector.

    Raises:
        PassFailedException: the type is another one.
    """
    if not isinstance(type_, VectorType) or type_.get_num_dims() != 1:
        raise PassFailedException(
            f"{type_} cannot be lowered to llvm; accepted are vectors of one dimension"
        )
    return type_


LOWERINGS: Lowerings = {
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
    vector.BroadcastOp: _broadcast,
    vector.ExtractOp: _extract,
    vector.ShuffleOp: _shuffle,
    vector.BitcastOp: bitcast,
    vector.ReductionOp: _reduction,
    vector.CreateMaskOp: _create_mask,
    host.DotIntegersOp: _dot_integers,
    DotBF16Op: _dot,
}
