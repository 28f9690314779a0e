"""Arithmetic on 8 channels at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, VectorType, f32, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import FunctionBuilder
from byoc_mlir.backends.dnnl.own_layouts import LANES, PANEL
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


def add_products(
    function: FunctionBuilder,
    numbers: Sequence[SSAValue],
    row: SSAValue,
    sums: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    """Adds to the sums the product of each number with a row of a panel.

    Args:
        numbers: their addresses.
        row: the address of `PANEL` weights.
        sums: for each number the vectors of its sums.
    """
    weights = [load(function, further(function, row, lane)) for lane in range(0, PANEL, LANES)]
    totals: list[SSAValue] = []
    for place, address in enumerate(numbers):
        value = broadcast(function, function.load(address, f32))
        for at, weight in enumerate(weights, place * len(weights)):
            totals.append(fused(function, value, weight, sums[at]))
    return totals
