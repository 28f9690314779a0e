"""How numbers become bytes between two limits: by means of any processor, or of those with AVX2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i8, i16, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters
from byoc_mlir.kernels.ops import float_arithmetic, unary, vector_type
from byoc_mlir.kernels.vectors import Vectors, broadcast, joined, shuffled

_EXACT = llvm.FastMathAttr(None)
_NO_NANS = llvm.FastMathAttr([FastMathFlag.NO_NANS, FastMathFlag.NO_SIGNED_ZEROS])
_ROUNDING = 1.5 * 2.0**23
"""What a number of less than 22 bits is added to, so that its fraction finds no place."""

AVX2_LANES = 8
"""Those of the vectors that AVX2 narrows."""

_HALF, _FOURTH = 16, 4
"""Bytes of half a vector, and those in it that one vector of numbers gives."""

_ROUND = "llvm.x86.avx.cvt.ps2dq.256"
_TO_WORDS = "llvm.x86.avx2.packssdw"
_TO_BYTES = {16: "llvm.x86.sse2.packuswb.128", 32: "llvm.x86.avx2.packuswb"}
"""By how many bytes there are."""


class Narrowing(Protocol):
    """Writes what makes bytes of vectors of numbers."""

    @property
    def most(self) -> int:
        """How many vectors become bytes together, at the lowest cost for each."""
        ...

    def of(self, numbers: Sequence[SSAValue]) -> SSAValue:
        """The bytes of one, two or, where that is the most, four vectors of `f32`, in a vector."""
        ...


@dataclass(frozen=True)
class Rounding:
    """With arithmetic of `f32`."""

    function: FunctionBuilder
    lanes: int
    lower: SSAValue
    upper: SSAValue
    """Vectors of the least and the largest number, less what stands for 0."""
    zero_point: SSAValue
    most = 2

    @staticmethod
    def told(
        function: FunctionBuilder, lanes: int, parameters: BytesParameters[SSAValue]
    ) -> Rounding:
        """That for the limits that a kernel is told."""
        return Rounding(
            function,
            lanes,
            _limit(function, lanes, parameters, parameters.lower),
            _limit(function, lanes, parameters, parameters.upper),
            function.insert(llvm.TruncOp(parameters.zero_point, i8)),
        )

    def of(self, numbers: Sequence[SSAValue]) -> SSAValue:
        function, rounding = self.function, Vectors(self.function, self.lanes).splat(_ROUNDING)
        words: list[SSAValue] = []
        for number in numbers:
            within = limited(function, number, self.lower, self.upper)
            # the lowest bits of the sum are the integer, rounded to the nearest, halves to even
            rounded = function.insert(float_arithmetic(llvm.FAddOp, within, rounding, _EXACT))
            words.append(
                function.insert(unary(llvm.BitcastOp, rounded, vector_type(i32, self.lanes)))
            )
        whole, lanes = joined(function, words), self.lanes * len(numbers)
        bytes_ = function.insert(unary(llvm.TruncOp, whole, vector_type(i8, lanes)))
        return _added(function, bytes_, self.zero_point)


@dataclass(frozen=True)
class Saturating:
    """With the instructions of AVX2 that round, and whose results saturate in fewer bits: less the
    lowest byte, numbers that are too small become 0."""

    function: FunctionBuilder
    upper: SSAValue
    """A vector of the largest number, less what stands for 0."""
    distance: SSAValue
    """From the lowest byte to what stands for 0."""
    lowest: SSAValue
    most = 4

    @staticmethod
    def told(function: FunctionBuilder, parameters: BytesParameters[SSAValue]) -> Saturating:
        """That for the limits that a kernel is told."""
        distance = function.subtract(parameters.zero_point, parameters.lower)
        return Saturating(
            function,
            _limit(function, AVX2_LANES, parameters, parameters.upper),
            function.insert(llvm.TruncOp(distance, i16)),
            function.insert(llvm.TruncOp(parameters.lower, i8)),
        )

    def of(self, numbers: Sequence[SSAValue]) -> SSAValue:
        integers = [self._rounded(number) for number in numbers]
        if len(integers) == 1:
            integers *= 2
        words = [self._words(*integers[at : at + 2]) for at in range(0, len(integers), 2)]
        if len(words) == 1:  # the lower and the upper half
            (both,) = words
            words = [shuffled(self.function, both, both, range(at, at + 8)) for at in (0, 8)]
        size = _HALF * len(integers) // 2
        bytes_ = self.function.call_intrinsic(_TO_BYTES[size], words, vector_type(i8, size))
        ordered = shuffled(self.function, bytes_, bytes_, _order(len(numbers), size // 2))
        return _added(self.function, ordered, self.lowest)

    def _rounded(self, number: SSAValue) -> SSAValue:
        """The nearest integers, halves to even; the least one, where a number is smaller."""
        within = _extreme(self.function, llvm.VectorFMinOp, number, self.upper)
        return self.function.call_intrinsic(_ROUND, [within], vector_type(i32, AVX2_LANES))

    def _words(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """Words of 16 bits, less the lowest byte: first halves of both, then the others."""
        type_ = vector_type(i16, 2 * AVX2_LANES)
        words = self.function.call_intrinsic(_TO_WORDS, [one, other], type_)
        distances = broadcast(self.function, self.distance, words)
        return self.function.call_intrinsic(
            f"llvm.sadd.sat.v{2 * AVX2_LANES}i16", [words, distances], type_
        )


def _order(vectors: int, half: int) -> list[int]:
    """Where the bytes of each vector are: a fourth of 16 in each of both halves."""
    return [
        first + byte
        for vector in range(vectors)
        for first in (_FOURTH * vector, half + _FOURTH * vector)
        for byte in range(_FOURTH)
    ]


def limited(
    function: FunctionBuilder, number: SSAValue, lower: SSAValue, upper: SSAValue
) -> SSAValue:
    """Numbers between two limits."""
    above = _extreme(function, llvm.VectorFMaxOp, number, lower)
    return _extreme(function, llvm.VectorFMinOp, above, upper)


def _extreme(
    function: FunctionBuilder,
    op: type[llvm.VectorFMaxOp | llvm.VectorFMinOp],
    lhs: SSAValue,
    rhs: SSAValue,
) -> SSAValue:
    """The larger or the smaller ones of two vectors."""
    properties: dict[str, Attribute] = {"fastmathFlags": _NO_NANS}
    return function.insert(
        op.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)
    )


def _limit(
    function: FunctionBuilder,
    lanes: int,
    parameters: BytesParameters[SSAValue],
    limit: SSAValue,
) -> SSAValue:
    number = function.subtract(limit, parameters.zero_point)
    return Vectors(function, lanes).broadcast(function.insert(llvm.SIToFPOp(number, f32)))


def _added(function: FunctionBuilder, bytes_: SSAValue, byte: SSAValue) -> SSAValue:
    return function.binary(llvm.AddOp, bytes_, broadcast(function, byte, bytes_))
