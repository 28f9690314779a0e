"""Lowerings to `llvm` of the `arith` ops that the compiler emits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnrealizedConversionCastOp,
    VectorType,
    f32,
    i16,
    i32,
    i64,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import llvm_ext, llvm_intrinsics
from byoc_mlir.dialects.arith_ext import RemFOp
from byoc_mlir.kernels.ops import compare, integer_attribute
from byoc_mlir.lowering.to_llvm import floats
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowering, Lowerings
from byoc_mlir.lowering.to_llvm.types import convert_type

_NO_FLAGS = arith.FastMathFlagsAttr("none")
_NO_LLVM_FLAGS = llvm.FastMathAttr(None)


@cache
def fastmath(flags: arith.FastMathFlagsAttr) -> llvm.FastMathAttr:
    """Converts fast-math flags to the llvm dialect."""
    return _NO_LLVM_FLAGS if flags == _NO_FLAGS else llvm.FastMathAttr(flags.data)


def integer_op(target: type[Operation]) -> Lowering:
    """Returns the lowering of an integer op whose counterpart has the same operands and result."""

    def lower(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
        result_type = convert_type(op.results[0].type)
        return [
            emitter.emit(
                target.create(operands=emitter.all(op.operands), result_types=[result_type])
            )
        ]

    return lower


def overflow_op(target: type[llvm.ArithmeticBinOpOverflow]) -> Lowering:
    """Returns the lowering of an integer op with overflow flags."""

    def lower(
        op: arith.SignlessIntegerBinaryOperationWithOverflow, emitter: Emitter
    ) -> Sequence[SSAValue]:
        lhs, rhs = emitter.all(op.operands)
        properties: dict[str, Attribute] = {"overflowFlags": _overflow_flags(op.overflow_flags)}
        return [
            emitter.emit(
                target.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)
            )
        ]

    return lower


@cache
def _overflow_flags(flags: arith.IntegerOverflowAttr) -> IntegerAttr:
    names = [llvm.OverflowFlag(flag.value) for flag in flags.data]
    return IntegerAttr(llvm.OverflowAttr(names).to_int(), i32)


def float_op(target: type[Operation]) -> Lowering:
    """Returns the lowering of a float op whose counterpart has the same operands, result and
    flags.
    """

    def lower(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
        result_type = op.results[0].type
        flags = op.properties.get("fastmath", _NO_FLAGS)
        assert isinstance(flags, arith.FastMathFlagsAttr)
        value = emitter.emit(
            target.create(
                operands=[floats.operand(value, emitter) for value in op.operands],
                result_types=[convert_type(floats.compute_type(result_type))],
                properties={"fastmathFlags": fastmath(flags)},
            )
        )
        return [floats.result(value, result_type, emitter)]

    return lower


def sign_op(target: type[Operation]) -> Lowering:
    """Returns the lowering of an op that changes the sign only: on f16 it changes the bit."""
    general = float_op(target)

    def lower(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
        type_ = op.results[0].type
        if not isinstance(type_, Float16Type):
            return general(op, emitter)
        operands, properties = emitter.all(op.operands), {"fastmathFlags": _NO_LLVM_FLAGS}
        made = target.create(operands=operands, result_types=[type_], properties=properties)
        return [emitter.emit(made)]

    return lower


def _constant(op: arith.ConstantOp, emitter: Emitter) -> Sequence[SSAValue]:
    type_ = convert_type(op.result.type)
    value = _constant_value(op.value, type_)
    constant = llvm.ConstantOp.create(result_types=[type_], properties={"value": value})
    return [emitter.emit(constant)]


def _constant_value(value: Attribute, type_: Attribute) -> Attribute:
    match value:
        case IntegerAttr(type=IndexType()):
            return integer_attribute(value.value.data, i64)
        case FloatAttr(type=BFloat16Type()):
            return IntegerAttr(bf16_bits(value), i16, truncate_bits=True)
        case DenseIntOrFPElementsAttr() if value.get_type() != type_:
            raise PassFailedException(f"a constant of type {value.get_type()} cannot be lowered")
        case _:
            return value


def bf16_bits(value: FloatAttr) -> int:
    """Returns the 16 bits of a bf16 attribute."""
    dense = DenseIntOrFPElementsAttr.from_list(VectorType(value.type, [1]), [value.value.data])
    return int.from_bytes(dense.data.data, "little")


def _floordivsi(op: arith.FloorDivSIOp, emitter: Emitter) -> Sequence[SSAValue]:
    """Emits a division that truncates, less 1 for a remainder and operands of different sign."""
    lhs, rhs = emitter[op.lhs], emitter[op.rhs]
    quotient = emitter.emit(llvm.SDivOp(lhs, rhs))
    product = emitter.emit(llvm.MulOp(quotient, rhs))
    inexact = emitter.emit(compare("ne", product, lhs))
    signs = emitter.emit(llvm.XOrOp(lhs, rhs))
    zero = emitter.constant(0, _integer(lhs.type))
    signs_differ = emitter.emit(compare("slt", signs, zero))
    correction = emitter.emit(llvm.AndOp(inexact, signs_differ))
    step = emitter.emit(llvm.ZExtOp(correction, quotient.type))
    return [emitter.emit(llvm.SubOp(quotient, step))]


def _extremum(target: type[Operation], strict_predicate: str) -> Lowering:
    """Returns the lowering of `maximumf` or `minimumf`.

    If one operand is a constant that is neither zero nor NaN, a comparison and a select have the
    same result, even for NaN, and are one instruction on x86. With the flag `nsz`, the constant may
    be zero.
    """
    general = float_op(target)

    def lower(op: arith.FloatingPointLikeBinaryOperation, emitter: Emitter) -> Sequence[SSAValue]:
        signed_zeros = FastMathFlag.NO_SIGNED_ZEROS not in op.fastmath.data
        if not _is_plain_constant(op.rhs, allow_zero=not signed_zeros):
            return general(op, emitter)
        value, bound = emitter[op.lhs], emitter[op.rhs]
        beyond = llvm.FCmpOp(value, bound, strict_predicate)
        return [emitter.emit(llvm.SelectOp(emitter.emit(beyond), bound, value))]

    return lower


def _is_plain_constant(value: SSAValue, *, allow_zero: bool) -> bool:
    """True if a value is a scalar constant, not bf16, not NaN, and not zero unless allowed."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return False
    if isinstance(value.type, BFloat16Type):
        return False
    number = owner.value.value.data
    return not math.isnan(number) and (allow_zero or number != 0.0)


def _cmpi(op: arith.CmpiOp, emitter: Emitter) -> Sequence[SSAValue]:
    predicate = IntegerAttr(op.predicate.value.data, 64)
    return [emitter.emit(llvm_ext.ICmpOp(emitter[op.lhs], emitter[op.rhs], predicate))]


def _cmpf(op: arith.CmpfOp, emitter: Emitter) -> Sequence[SSAValue]:
    compare = llvm.FCmpOp(
        floats.operand(op.lhs, emitter),
        floats.operand(op.rhs, emitter),
        IntegerAttr(op.predicate.value.data, 64),
    )
    compare.fastmathFlags = fastmath(op.fastmath)
    return [emitter.emit(compare)]


def _select(op: arith.SelectOp, emitter: Emitter) -> Sequence[SSAValue]:
    return [emitter.emit(llvm.SelectOp(emitter[op.cond], emitter[op.lhs], emitter[op.rhs]))]


def bitcast(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
    """Emits a conversion that keeps the bits, unless the lowered types are equal."""
    value, target = emitter[op.operands[0]], convert_type(op.results[0].type)
    return [value if value.type == target else emitter.emit(llvm.BitcastOp(value, target))]


def _index_cast(op: arith.IndexCastOp, emitter: Emitter) -> Sequence[SSAValue]:
    value, target = emitter[op.input], convert_type(op.result.type)
    if value.type == target:
        return [value]
    is_wider = _integer(value.type).width.data < _integer(target).width.data
    cast = llvm.SExtOp if is_wider else llvm.TruncOp
    return [emitter.emit(cast(value, target))]


def _fptosi(op: arith.FPToSIOp, emitter: Emitter) -> Sequence[SSAValue]:
    value = floats.operand(op.input, emitter)
    return [emitter.emit(llvm_ext.FPToSIOp(value, convert_type(op.result.type)))]


def _integer_to_float(target: type[llvm.GenericCastOp]) -> Lowering:
    def lower(op: arith.IntegerToFloatingPointBaseOp, emitter: Emitter) -> Sequence[SSAValue]:
        result_type = op.result.type
        value = emitter.emit(target(emitter[op.input], floats.compute_type(result_type)))
        return [floats.result(value, result_type, emitter)]

    return lower


def _extf(op: arith.ExtFOp, emitter: Emitter) -> Sequence[SSAValue]:
    value, target = floats.operand(op.input, emitter), op.result.type
    if value.type == target:
        return [value]
    return [emitter.emit(llvm.FPExtOp(value, target))]


def _truncf(op: arith.TruncFOp, emitter: Emitter) -> Sequence[SSAValue]:
    value, target = emitter[op.input], op.result.type
    if isinstance(target, BFloat16Type):
        return [floats.narrow(value, emitter)]
    if isinstance(value.type, Float64Type) and isinstance(target, Float16Type):
        # The direct conversion is a call into the compiler's runtime library, which a JIT lacks.
        value = emitter.emit(llvm.FPTruncOp(value, f32))
    return [emitter.emit(llvm.FPTruncOp(value, target))]


def _cast(op: UnrealizedConversionCastOp, emitter: Emitter) -> Sequence[SSAValue]:
    values = emitter.all(op.inputs)
    if [value.type for value in values] != [convert_type(result.type) for result in op.results]:
        found = ", ".join(str(value.type) for value in op.inputs)
        wanted = ", ".join(str(value.type) for value in op.results)
        raise PassFailedException(
            f"builtin.unrealized_conversion_cast from {found} to {wanted} does not fold away"
        )
    return values


def _integer(type_: Attribute) -> IntegerType:
    assert isinstance(type_, IntegerType)
    return type_


LOWERINGS: Lowerings = {
    arith.ConstantOp: _constant,
    arith.AddiOp: overflow_op(llvm.AddOp),
    arith.SubiOp: overflow_op(llvm.SubOp),
    arith.MuliOp: overflow_op(llvm.MulOp),
    arith.ShLIOp: overflow_op(llvm.ShlOp),
    arith.DivUIOp: integer_op(llvm.UDivOp),
    arith.DivSIOp: integer_op(llvm.SDivOp),
    arith.RemUIOp: integer_op(llvm.URemOp),
    arith.RemSIOp: integer_op(llvm.SRemOp),
    arith.AndIOp: integer_op(llvm.AndOp),
    arith.OrIOp: integer_op(llvm.OrOp),
    arith.XOrIOp: integer_op(llvm.XOrOp),
    arith.ShRUIOp: integer_op(llvm.LShrOp),
    arith.ShRSIOp: integer_op(llvm.AShrOp),
    arith.MinUIOp: integer_op(llvm_intrinsics.UMinOp),
    arith.MaxUIOp: integer_op(llvm_intrinsics.UMaxOp),
    arith.MinSIOp: integer_op(llvm_intrinsics.SMinOp),
    arith.MaxSIOp: integer_op(llvm_intrinsics.SMaxOp),
    arith.FloorDivSIOp: _floordivsi,
    arith.AddfOp: float_op(llvm.FAddOp),
    arith.SubfOp: float_op(llvm.FSubOp),
    arith.MulfOp: float_op(llvm.FMulOp),
    arith.DivfOp: float_op(llvm.FDivOp),
    RemFOp: float_op(llvm.FRemOp),
    arith.NegfOp: sign_op(llvm.FNegOp),
    arith.MaximumfOp: _extremum(llvm_intrinsics.MaximumOp, "olt"),
    arith.MinimumfOp: _extremum(llvm_intrinsics.MinimumOp, "ogt"),
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    arith.BitcastOp: bitcast,
    arith.IndexCastOp: _index_cast,
    arith.ExtSIOp: integer_op(llvm.SExtOp),
    arith.ExtUIOp: integer_op(llvm.ZExtOp),
    arith.TruncIOp: integer_op(llvm.TruncOp),
    arith.FPToSIOp: _fptosi,
    arith.SIToFPOp: _integer_to_float(llvm.SIToFPOp),
    arith.UIToFPOp: _integer_to_float(llvm_ext.UIToFPOp),
    arith.ExtFOp: _extf,
    arith.TruncFOp: _truncf,
    UnrealizedConversionCastOp: _cast,
}
