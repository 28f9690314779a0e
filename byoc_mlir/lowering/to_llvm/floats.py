"""Arithmetic of 16-bit floats in f32, for processors without instructions for them.

LLVM vectorises conversions of f16, but not its roundings, minima and maxima. Values of bf16 are i16
bits in memory.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, f32, i16, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.lowering.to_llvm.emitter import Emitter

_QUIET_NAN = 0x7FC0
_ROUNDING_BIAS = 0x7FFF
_UNORDERED = "uno"


def compute_type(type_: Attribute) -> Attribute:
    """Returns the type in which arithmetic on `type_` is done."""
    return f32 if isinstance(type_, BFloat16Type | Float16Type) else type_


def operand(value: SSAValue, emitter: Emitter) -> SSAValue:
    """Returns the lowered operand, converted to the type for arithmetic."""
    lowered = emitter[value]
    if isinstance(value.type, Float16Type):
        return emitter.emit(llvm.FPExtOp(lowered, f32))
    return widen(lowered, emitter) if isinstance(value.type, BFloat16Type) else lowered


def result(value: SSAValue, type_: Attribute, emitter: Emitter) -> SSAValue:
    """Converts the result of an arithmetic op to the source type `type_`."""
    if isinstance(type_, Float16Type):
        return emitter.emit(llvm.FPTruncOp(value, type_))
    return narrow(value, emitter) if isinstance(type_, BFloat16Type) else value


def widen(bits: SSAValue, emitter: Emitter) -> SSAValue:
    """Converts the bits of a bf16 to f32; they are the upper half of the f32's bits."""
    wide = emitter.emit(llvm.ZExtOp(bits, i32))
    shifted = emitter.emit(llvm.ShlOp(wide, emitter.constant(16, i32)))
    return emitter.emit(llvm.BitcastOp(shifted, f32))


def narrow(value: SSAValue, emitter: Emitter) -> SSAValue:
    """Rounds a float to the bits of the nearest bf16, ties to even; a NaN becomes the quiet NaN."""
    if isinstance(value.type, Float64Type):
        value = emitter.emit(llvm.FPTruncOp(value, f32))
    bits = emitter.emit(llvm.BitcastOp(value, i32))
    upper = emitter.emit(llvm.LShrOp(bits, emitter.constant(16, i32)))
    odd = emitter.emit(llvm.AndOp(upper, emitter.constant(1, i32)))
    bias = emitter.emit(llvm.AddOp(odd, emitter.constant(_ROUNDING_BIAS, i32)))
    rounded = emitter.emit(llvm.AddOp(bits, bias))
    kept = emitter.emit(llvm.LShrOp(rounded, emitter.constant(16, i32)))
    short = emitter.emit(llvm.TruncOp(kept, i16))
    is_nan = emitter.emit(llvm.FCmpOp(value, value, _UNORDERED))
    return emitter.emit(llvm.SelectOp(is_nan, emitter.constant(_QUIET_NAN, i16), short))
