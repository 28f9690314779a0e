"""Lowerings to `llvm` of `math` ops: functions of one float, and other ops that the compiler emits.

An op becomes an intrinsic if LLVM has one, else a call of the C library.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    BoolAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    f32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import llvm_intrinsics
from byoc_mlir.lowering.to_llvm import floats
from byoc_mlir.lowering.to_llvm.arith import fastmath, float_op, sign_op
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowering, Lowerings, float_constant
from byoc_mlir.lowering.to_llvm.types import convert_type

_SUFFIXES: dict[type[Attribute], str] = {Float32Type: "f", Float64Type: ""}


def _library_call(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
    """Emits a call of the C library's function of the op's name: `erf` for f64, `erff` for f32 and
    narrower types.
    """
    result_type = op.results[0].type
    args = [floats.operand(value, emitter) for value in op.operands]
    type_ = args[0].type
    if type(type_) not in _SUFFIXES:
        raise PassFailedException(
            f"{op.name} on {result_type} cannot be lowered; accepted are f16, bf16, f32 and f64"
        )
    name = op.name.removeprefix("math.") + _SUFFIXES[type(type_)]
    (value,) = emitter.call(name, args, type_)
    return [floats.result(value, result_type, emitter)]


def _rounding(target: type[Operation]) -> Lowering:
    """Returns the lowering of a rounding to whole numbers.

    A rounding of an f16 is in f32, followed by a copy of its sign, which changes nothing. Without
    it LLVM would round in f16 after all, one element at a time.
    """
    general = float_op(target)

    def lower(op: Operation, emitter: Emitter) -> Sequence[SSAValue]:
        result_type = op.results[0].type
        if not isinstance(result_type, Float16Type):
            return general(op, emitter)
        value = floats.operand(op.operands[0], emitter)
        properties = {"fastmathFlags": llvm.FastMathAttr(None)}
        rounded = target.create(operands=[value], result_types=[f32], properties=properties)
        signed = llvm.FCopySignOp(emitter.emit(rounded), value)
        return [floats.result(emitter.emit(signed), result_type, emitter)]

    return lower


def _rsqrt(op: math.RsqrtOp, emitter: Emitter) -> Sequence[SSAValue]:
    flags, type_ = fastmath(op.fastmath), op.result.type
    if not isinstance(type_, BFloat16Type | Float16Type | Float32Type | Float64Type):
        raise PassFailedException(f"math.rsqrt on {type_} cannot be lowered; accepted are scalars")
    root = emitter.emit(llvm.FSqrtOp(floats.operand(op.operand, emitter), flags))
    one = emitter.emit(float_constant(1.0, root.type))
    return [floats.result(emitter.emit(llvm.FDivOp(one, root, flags)), type_, emitter)]


def _absi(op: math.AbsIOp, emitter: Emitter) -> Sequence[SSAValue]:
    """Emits an intrinsic that is defined for every operand."""
    absolute = llvm_intrinsics.AbsOp.create(
        operands=[emitter[op.operand]],
        result_types=[convert_type(op.result.type)],
        properties={"is_int_min_poison": BoolAttr.from_bool(False)},
    )
    return [emitter.emit(absolute)]


LOWERINGS: Lowerings = {
    math.AbsFOp: sign_op(llvm.FAbsOp),
    math.AcosOp: float_op(llvm_intrinsics.AcosOp),
    math.AcoshOp: _library_call,
    math.AsinOp: float_op(llvm_intrinsics.AsinOp),
    math.AsinhOp: _library_call,
    math.AtanOp: float_op(llvm_intrinsics.AtanOp),
    math.AtanhOp: _library_call,
    math.CbrtOp: _library_call,
    math.CeilOp: _rounding(llvm.FCeilOp),
    math.CopySignOp: float_op(llvm.FCopySignOp),
    math.CosOp: float_op(llvm.FCosOp),
    math.CoshOp: float_op(llvm_intrinsics.CoshOp),
    math.ErfOp: _library_call,
    math.ExpOp: float_op(llvm.FExpOp),
    math.Exp2Op: float_op(llvm.FExp2Op),
    math.ExpM1Op: _library_call,
    math.FloorOp: _rounding(llvm.FFloorOp),
    math.LogOp: float_op(llvm.FLogOp),
    math.Log10Op: _library_call,
    math.Log1pOp: _library_call,
    math.Log2Op: float_op(llvm.FLog2Op),
    math.PowFOp: float_op(llvm.FPowOp),
    math.RoundOp: _rounding(llvm_intrinsics.RoundOp),
    math.RoundEvenOp: _rounding(llvm_intrinsics.RoundEvenOp),
    math.RsqrtOp: _rsqrt,
    math.SinOp: float_op(llvm.FSinOp),
    math.SinhOp: float_op(llvm_intrinsics.SinhOp),
    math.SqrtOp: float_op(llvm.FSqrtOp),
    math.TanOp: float_op(llvm_intrinsics.TanOp),
    math.TanhOp: float_op(llvm_intrinsics.TanhOp),
    math.TruncOp: _rounding(llvm_intrinsics.FTruncOp),
    math.AbsIOp: _absi,
}
