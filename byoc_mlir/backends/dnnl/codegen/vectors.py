"""Arithmetic on 8 channels at once, and Winograd's transforms of one line with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, VectorType, f32, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import FunctionBuilder
from byoc_mlir.backends.dnnl.winograd import LANES, Algorithm
from byoc_mlir.dialects.llvm_intrinsics import MaximumOp, MinimumOp

VECTOR = VectorType(f32, [LANES])
ELEMENT_BYTES = 4
_FUSED = llvm.FastMathAttr([FastMathFlag.ALLOW_CONTRACT])
_TO_READ, _NEAR, _DATA = 0, 3, 1
"""What `llvm.prefetch` is told."""

_ANY_ZERO = llvm.FastMathAttr([FastMathFlag.NO_SIGNED_ZEROS])


def element(function: FunctionBuilder, base: SSAValue, index: SSAValue) -> SSAValue:
    """The address of an element of `f32`."""
    return function.insert(llvm.GEPOp(base, [llvm.GEP_USE_SSA_VAL], f32, ssa_indices=[index]))


def load(function: FunctionBuilder, address: SSAValue) -> SSAValue:
    """The 8 channels from an address on."""
    return function.insert(llvm.LoadOp(address, VECTOR, alignment=ELEMENT_BYTES))


def store(function: FunctionBuilder, value: SSAValue, address: SSAValue) -> None:
    """Writes 8 channels from an address on."""
    function.append(llvm.StoreOp(value, address, alignment=ELEMENT_BYTES))


def further(function: FunctionBuilder, base: SSAValue, elements: int) -> SSAValue:
    """The address that many elements further on."""
    return element(function, base, function.integer(elements))


def fetch(function: FunctionBuilder, address: SSAValue) -> None:
    """Brings to the caches what will be read soon."""
    how = [function.integer(value, i32) for value in (_TO_READ, _NEAR, _DATA)]
    function.append(llvm.CallIntrinsicOp("llvm.prefetch.p0", [address, *how], []))


def splat(function: FunctionBuilder, value: float) -> SSAValue:
    """One number for all channels."""
    data = DenseIntOrFPElementsAttr.from_list(VECTOR, [value] * LANES)
    return function.insert(llvm.ConstantOp(data, VECTOR))


def source_axis(
    function: FunctionBuilder, algorithm: Algorithm, d: Sequence[SSAValue]
) -> list[SSAValue]:
    """The points of a line of pixels."""
    weighted = partial(weighted_sum, function)
    points: list[SSAValue] = []
    for point in algorithm.points:
        factors = algorithm.polynomial(without=point)
        even, odd = (weighted(*_terms(factors, d[first:])) for first in (2, 1))
        points += [weighted((1, even), (sign * point, odd)) for sign in (1, -1)]
    factors = algorithm.polynomial()
    zero, infinity = (weighted(*_terms(factors, d[first:])) for first in (0, 1))
    return [zero, *points, infinity]


def _terms(factors: Sequence[float], values: Sequence[SSAValue]) -> list[tuple[float, SSAValue]]:
    """Factors for every other value, the last one, which is 1, first."""
    return list(zip(factors, values[: 2 * len(factors) : 2], strict=True))[::-1]


def result_axis(
    function: FunctionBuilder, algorithm: Algorithm, m: Sequence[SSAValue]
) -> list[SSAValue]:
    """The results of a line of points."""
    weighted = partial(weighted_sum, function)
    pairs = list(zip(m[1:-1:2], m[2:-1:2], strict=True))
    sums, differences = (
        [weighted((1, one), (sign, other)) for one, other in pairs] for sign in (1, -1)
    )
    results: list[SSAValue] = []
    for power in range(algorithm.step):
        terms = [
            (point**power, value)
            for point, value in zip(
                algorithm.points, differences if power % 2 else sums, strict=True
            )
        ]
        ends = {0: [(1.0, m[0])], algorithm.step - 1: [(1.0, m[-1])]}.get(power, [])
        results.append(weighted(*ends, *terms))
    return results


def weighted_sum(function: FunctionBuilder, *terms: tuple[float, SSAValue]) -> SSAValue:
    """The sum of values times numbers, of which the first is 1."""
    (_, total), *others = terms
    for factor, value in others:
        if factor == -1:
            total = function.insert(llvm.FSubOp(total, value, _FUSED))
            continue
        if factor == 1:
            total = function.insert(llvm.FAddOp(total, value, _FUSED))
            continue
        total = fused(function, value, splat(function, factor), total)
    return total


def fused(function: FunctionBuilder, one: SSAValue, other: SSAValue, total: SSAValue) -> SSAValue:
    """A sum with a product, rounded once where the processor can."""
    product = function.insert(llvm.FMulOp(one, other, _FUSED))
    return function.insert(llvm.FAddOp(total, product, _FUSED))


def at_least(function: FunctionBuilder, value: SSAValue, limit: SSAValue) -> SSAValue:
    """The value, or a limit that is larger; NaN stays what it is."""
    return _bounded(function, MaximumOp, value, limit)


def limited(
    function: FunctionBuilder, value: SSAValue, lower: SSAValue, upper: SSAValue
) -> SSAValue:
    """The value between two limits; NaN stays what it is."""
    return _bounded(function, MinimumOp, at_least(function, value, lower), upper)


def _bounded(
    function: FunctionBuilder,
    op: type[MaximumOp] | type[MinimumOp],
    value: SSAValue,
    limit: SSAValue,
) -> SSAValue:
    properties = {"fastmathFlags": _ANY_ZERO}
    operands = [value, limit]
    return function.insert(
        op.create(operands=operands, result_types=[VECTOR], properties=properties)
    )


def broadcast(function: FunctionBuilder, number: SSAValue) -> SSAValue:
    """A number for all channels that is known when the code runs."""
    first = function.insert(llvm.InsertElementOp(splat(function, 0.0), number, function.integer(0)))
    lanes = DenseArrayBase.from_list(i32, [0] * LANES)
    return function.insert(llvm.ShuffleVectorOp(first, first, lanes, VECTOR))


def scaled(function: FunctionBuilder, value: SSAValue, factor: int, offset: int = 0) -> SSAValue:
    """`value * factor + offset`."""
    if factor != 1:
        value = function.binary(llvm.MulOp, value, function.integer(factor))
    return function.binary(llvm.AddOp, value, function.integer(offset)) if offset else value


def divided(function: FunctionBuilder, value: SSAValue, by: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Quotient and remainder."""
    quotient = function.binary(llvm.SDivOp, value, by)
    return quotient, function.binary(llvm.SRemOp, value, by)


def share(
    function: FunctionBuilder, count: SSAValue, member: SSAValue, members: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """From where to where a member's share of some things goes."""
    after = scaled(function, member, 1, 1)
    bounds = [function.binary(llvm.MulOp, count, one) for one in (member, after)]
    begin, end = (function.binary(llvm.SDivOp, bound, members) for bound in bounds)
    return begin, end
