"""`x86vector` to `llvm`: an instruction where the processor has it, else the arithmetic of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    VectorType,
    bf16,
    f32,
    i32,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.x86vector import DotBF16Op
from byoc_mlir.kernels.ops import float_arithmetic
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings
from byoc_mlir.runtime.system.machine import target_cpu

_DOT = "llvm.x86.avx512bf16.dpbf16ps.512"
_LANES = 16
"""Its sums."""

_HALF = 16
"""The bits of a `bf16`, which are the upper ones of the `f32` of the same value."""

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
    """The lower and the upper `bf16` of each word as `f32`."""
    lower = llvm.ShlOp(words, emitter.emit(_splat(_HALF, type_)))
    upper = llvm.AndOp(words, emitter.emit(_splat(_UPPER, type_)))
    return _float(lower, emitter), _float(upper, emitter)


def _float(bits: Operation, emitter: Emitter) -> SSAValue:
    value = emitter.emit(bits)
    assert isinstance(value.type, VectorType)
    return emitter.emit(llvm.BitcastOp(value, VectorType(f32, value.type.get_shape())))


def _splat(value: int, type_: VectorType[IntegerType]) -> llvm.ConstantOp:
    return llvm.ConstantOp(DenseIntOrFPElementsAttr.from_list(type_, [value]), type_)


LOWERINGS: Lowerings = {DotBF16Op: _dot}
