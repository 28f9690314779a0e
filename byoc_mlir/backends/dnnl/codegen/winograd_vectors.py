"""Arithmetic on 8 channels at once, and Winograd's F(4x4, 3x3) transforms with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, VectorType, f32, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import FunctionBuilder
from byoc_mlir.backends.dnnl.winograd import LANES
from byoc_mlir.dialects.llvm_intrinsics import MaximumOp, MinimumOp

VECTOR = VectorType(f32, [LANES])
ELEMENT_BYTES = 4
_FUSED = llvm.FastMathAttr([FastMathFlag.ALLOW_CONTRACT])
_ANY_ZERO = llvm.FastMathAttr([FastMathFlag.NO_SIGNED_ZEROS])

Axis = Callable[[FunctionBuilder, Sequence[SSAValue]], list[SSAValue]]
"""A transform of one line."""


def element(function: FunctionBuilder, base: SSAValue, index: SSAValue) -> SSAValue:
    """The address of an element of `f32`."""
    return function.insert(llvm.GEPOp(base, [llvm.GEP_USE_SSA_VAL], f32, ssa_indices=[index]))


def load(function: FunctionBuilder, address: SSAValue) -> SSAValue:
    """The 8 channels from an address on."""
    return function.insert(llvm.LoadOp(address, VECTOR, alignment=ELEMENT_BYTES))


def store(function: FunctionBuilder, value: SSAValue, address: SSAValue) -> None:
    """Writes 8 channels from an address on."""
    function.append(llvm.StoreOp(value, address, alignment=ELEMENT_BYTES))


def splat(function: FunctionBuilder, value: float) -> SSAValue:
    """One number for all channels."""
    data = DenseIntOrFPElementsAttr.from_list(VECTOR, [value] * LANES)
    return function.insert(llvm.ConstantOp(data, VECTOR))


def both_axes(
    function: FunctionBuilder, axis: Axis, values: Sequence[Sequence[SSAValue]]
) -> Iterator[SSAValue]:
    """A transform along x, then along y; row by row."""
    along_x = [axis(function, line) for line in values]
    along_y = [axis(function, column) for column in zip(*along_x, strict=True)]
    for line in zip(*along_y, strict=True):
        yield from line


def source_axis(function: FunctionBuilder, d: Sequence[SSAValue]) -> list[SSAValue]:
    """The 6 points of 6 pixels, by the interpolation points 0, 1, -1, 2, -2 and infinity."""
    weighted = partial(weighted_sum, function)
    a, b = weighted((1, d[4]), (-4, d[2])), weighted((1, d[3]), (-4, d[1]))
    c, e = weighted((1, d[4]), (-1, d[2])), weighted((1, d[3]), (-1, d[1]))
    return [
        weighted((1, d[4]), (4, d[0]), (-5, d[2])),
        weighted((1, a), (1, b)),
        weighted((1, a), (-1, b)),
        weighted((1, c), (2, e)),
        weighted((1, c), (-2, e)),
        weighted((1, d[5]), (4, d[1]), (-5, d[3])),
    ]


def result_axis(function: FunctionBuilder, m: Sequence[SSAValue]) -> list[SSAValue]:
    """The 4 results of 6 points."""
    weighted = partial(weighted_sum, function)
    a, b = weighted((1, m[1]), (1, m[2])), weighted((1, m[1]), (-1, m[2]))
    c, e = weighted((1, m[3]), (1, m[4])), weighted((1, m[3]), (-1, m[4]))
    return [
        weighted((1, m[0]), (1, a), (1, c)),
        weighted((1, b), (2, e)),
        weighted((1, a), (4, c)),
        weighted((1, m[5]), (1, b), (8, e)),
    ]


def weighted_sum(function: FunctionBuilder, *terms: tuple[float, SSAValue]) -> SSAValue:
    """The sum of values times numbers, of which the first is 1."""
    (_, total), *others = terms
    for factor, value in others:
        if factor == -1:
            total = function.insert(llvm.FSubOp(total, value, _FUSED))
            continue
        if factor != 1:
            value = function.insert(llvm.FMulOp(value, splat(function, factor), _FUSED))
        total = function.insert(llvm.FAddOp(total, value, _FUSED))
    return total


def limited(
    function: FunctionBuilder, value: SSAValue, lower: SSAValue, upper: SSAValue
) -> SSAValue:
    """The value between two limits; NaN stays what it is."""
    for limit, op in ((lower, MaximumOp), (upper, MinimumOp)):
        properties = {"fastmathFlags": _ANY_ZERO}
        value = function.insert(
            op.create(operands=[value, limit], result_types=[VECTOR], properties=properties)
        )
    return value


def broadcast(function: FunctionBuilder, number: SSAValue) -> SSAValue:
    """A number for all channels that is known when the code runs."""
    first = function.insert(llvm.InsertElementOp(splat(function, 0.0), number, function.integer(0)))
    lanes = DenseArrayBase.from_list(i32, [0] * LANES)
    return function.insert(llvm.ShuffleVectorOp(first, first, lanes, VECTOR))
