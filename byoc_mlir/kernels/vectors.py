"""Vectors of `f32`: the processor's vector unit, and arithmetic on vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float32Type,
    IntegerType,
    VectorType,
    f32,
    i32,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import SSAValue

from byoc_mlir.dialects.llvm_intrinsics import (
    FloatIntrinsic,
    FMulAddOp,
    MaximumOp,
    MinimumOp,
    ReduceFMaximumOp,
)
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.epilogue import Limits
from byoc_mlir.kernels.ops import float_arithmetic, i32_array, shuffle, vector_type

ELEMENT_BYTES = 4

Float: TypeAlias = Float32Type | BFloat16Type
"""Element type in memory; in registers it is `f32`."""

NARROW, WIDE = 2, 4
"""Vectors of a narrow and of a wide panel; other widths serve outputs that neither one divides.
With a wide panel, a tile has fewer rows of A: many rows, at distances of a large power of two,
would evict each other from L1."""

WIDE_REGISTERS = 32
"""Minimum number of registers for a wide panel."""

_CONTRACT = llvm.FastMathAttr([FastMathFlag.ALLOW_CONTRACT])
_AS_WRITTEN = llvm.FastMathAttr(None)
_ANY_ORDER = llvm.FastMathAttr([FastMathFlag.REASSOC])
_ANY_ZERO = llvm.FastMathAttr([FastMathFlag.NO_SIGNED_ZEROS])


@dataclass(frozen=True)
class VectorUnit:
    """Vectors of `f32`: length, number of registers, and the preferred panel."""

    lanes: int
    registers: int
    panel_vectors: int = NARROW
    """Vectors of weights that a kernel loads for each input channel."""

    @staticmethod
    def of(features: Collection[str]) -> VectorUnit:
        """Returns the vectors of a processor with these features, such as `avx2`."""
        if "avx512f" in features:
            return VectorUnit(16, 32)
        if "avx2" in features:
            return VectorUnit(8, 16)
        return VectorUnit(4, 32 if "asimd" in features else 16)

    @property
    def panel(self) -> int:
        """Returns the columns of a weight panel, which a kernel processes at once."""
        return self.panel_vectors * self.lanes

    @property
    def tile_rows(self) -> int:
        """Returns the maximum number of rows of a tile.

        The accumulators, a row of the panel and a broadcast value have to fit in the registers.
        """
        return (self.registers - self.panel_vectors - 1) // self.panel_vectors

    @property
    def tile(self) -> str:
        """Returns the part of symbols that identifies the largest tile: rows, vectors and lanes."""
        return f"{self.tile_rows}x{self.panel_vectors}x{self.lanes}"

    def lengths(self) -> Iterator[VectorUnit]:
        """Yields these vectors, then shorter ones of half the length each, down to SSE's."""
        yield self
        if self.lanes > FEWEST_LANES:
            yield from VectorUnit(self.lanes // 2, self.registers).lengths()

    def for_outputs(self, outputs: int) -> VectorUnit:
        """Returns the same vectors with the preferred panel for `outputs` outputs."""
        filled = self.filled_by(outputs)
        if filled:
            return filled[0]
        return VectorUnit(self.lanes, self.registers, 1) if outputs <= self.lanes else self

    def filled_by(self, outputs: int) -> Sequence[VectorUnit]:
        """Returns the same vectors with each panel width that divides `outputs`, by preference.

        The first one is usually the fastest.
        """
        vectors, rest = divmod(outputs, self.lanes)
        wide = (WIDE,) if self.registers >= WIDE_REGISTERS else ()
        counts = (count for count in (*wide, NARROW, 3) if not rest and vectors % count == 0)
        return [VectorUnit(self.lanes, self.registers, count) for count in counts]


FEWEST_LANES = 4
"""Lanes of the shortest supported vectors."""


@dataclass(frozen=True)
class Vectors:
    """Builder of arithmetic on vectors of `lanes` lanes."""

    function: FunctionBuilder
    lanes: int

    @property
    def type(self) -> VectorType[Float32Type]:
        """Returns the type of a vector."""
        return vector_type(f32, self.lanes)

    def load(self, address: SSAValue, element: Float = f32) -> SSAValue:
        """Loads a vector; converts elements of fewer bits to `f32`."""
        type_ = self.type if element == f32 else VectorType(element, [self.lanes])
        value = self.function.load(address, type_, element.size)
        return value if element == f32 else self.function.insert(llvm.FPExtOp(value, self.type))

    def row(self, address: SSAValue, panel: int) -> list[SSAValue]:
        """Loads a row of `panel` elements as vectors."""
        columns = range(0, panel, self.lanes)
        return [self.load(self.function.gep(address, column)) for column in columns]

    def repeated(self, address: SSAValue) -> SSAValue:
        """Loads an element and broadcasts it to all lanes."""
        element = self.function.load(address, vector_type(f32, 1), ELEMENT_BYTES)
        return shuffled(self.function, element, element, [0] * self.lanes)

    def store(self, value: SSAValue, address: SSAValue, element: Float = f32) -> None:
        """Stores a vector, rounded if `element` has fewer bits than `f32`."""
        if element != f32:
            type_ = VectorType(element, [self.lanes])
            value = self.function.insert(llvm.FPTruncOp(value, type_))
        self.function.store(value, address, element.size)

    def splat(self, value: float) -> SSAValue:
        """Returns a constant for all lanes."""
        return self.function.constant(_splat(float(value).hex(), self.lanes), self.type)

    def broadcast(self, number: SSAValue) -> SSAValue:
        """Broadcasts an `f32` to all lanes."""
        return broadcast(self.function, number, self.splat(0.0))

    def broadcast_bits(self, bits: SSAValue) -> SSAValue:
        """Broadcasts the `f32` in the lower bits of an `i64` to all lanes."""
        function = self.function
        narrow = function.insert(llvm.TruncOp(bits, i32))
        return self.broadcast(function.insert(llvm.BitcastOp(narrow, f32)))

    def add(self, lhs: SSAValue, rhs: SSAValue, *, contract: bool = True) -> SSAValue:
        """Computes `lhs + rhs`; if not `contract`, it is never fused into an FMA."""
        return self._arithmetic(llvm.FAddOp, lhs, rhs, contract=contract)

    def subtract(self, lhs: SSAValue, rhs: SSAValue, *, contract: bool = True) -> SSAValue:
        """Computes `lhs - rhs`; if not `contract`, it is never fused into an FMA."""
        return self._arithmetic(llvm.FSubOp, lhs, rhs, contract=contract)

    def multiply(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Computes `lhs * rhs`."""
        return self._arithmetic(llvm.FMulOp, lhs, rhs)

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """Computes `lhs * rhs + total`, rounded once if the processor has FMA."""
        return self._intrinsic(FMulAddOp, _AS_WRITTEN, lhs, rhs, total)

    def weighted_sum(self, *terms: tuple[float, SSAValue]) -> SSAValue:
        """Computes the sum of values times constants; the first constant must be 1."""
        (_, total), *others = terms
        for factor, value in others:
            if factor == -1:
                total = self.subtract(total, value)
            elif factor == 1:
                total = self.add(total, value)
            else:
                total = self.multiply_add(value, self.splat(factor), total)
        return total

    def _arithmetic(
        self,
        op: type[llvm.FAddOp | llvm.FSubOp | llvm.FMulOp],
        lhs: SSAValue,
        rhs: SSAValue,
        *,
        contract: bool = True,
    ) -> SSAValue:
        flags = _CONTRACT if contract else _AS_WRITTEN
        return self.function.insert(float_arithmetic(op, lhs, rhs, flags))

    def largest(self, value: SSAValue) -> SSAValue:
        """Returns the maximum over all lanes; NaN if a lane is NaN."""
        return self.function.insert(
            ReduceFMaximumOp.create(
                operands=[value], result_types=[f32], properties={"fastmathFlags": _ANY_ZERO}
            )
        )

    def total(self, value: SSAValue) -> SSAValue:
        """Returns the sum over all lanes, in any order."""
        start = self.function.real(-0.0)
        return self.function.insert(llvm.VectorReduceFAddOp(start, value, _ANY_ORDER))

    def maximum(self, value: SSAValue, limit: SSAValue) -> SSAValue:
        """Returns the lane-wise maximum, which keeps NaN."""
        return self._intrinsic(MaximumOp, _ANY_ZERO, value, limit)

    def clamp(self, value: SSAValue, lower: SSAValue, upper: SSAValue) -> SSAValue:
        """Clamps a vector to [lower, upper]; keeps NaN."""
        return self._intrinsic(MinimumOp, _ANY_ZERO, self.maximum(value, lower), upper)

    def limited(self, lower: float, upper: float) -> Callable[[SSAValue], SSAValue]:
        """Returns a function that clamps to constant limits, with one instruction for each finite
        limit.
        """

        def limit(value: SSAValue) -> SSAValue:
            if lower != -math.inf:
                value = self.maximum(value, self.splat(lower))
            if upper != math.inf:
                value = self._intrinsic(MinimumOp, _ANY_ZERO, value, self.splat(upper))
            return value

        return limit

    def limiter(
        self, limits: Limits, lower: SSAValue, upper: SSAValue
    ) -> Callable[[SSAValue], SSAValue]:
        """Returns a function that clamps: to `lower` for "relu", to both limits for "clip"; they
        are `f32` bits in an `i64`.
        """
        if limits == "none":
            return lambda value: value
        low = self.broadcast_bits(lower)
        if limits == "relu":
            return partial(self.maximum, limit=low)
        return partial(self.clamp, lower=low, upper=self.broadcast_bits(upper))

    def _intrinsic(
        self, op: type[FloatIntrinsic], flags: llvm.FastMathAttr, *operands: SSAValue
    ) -> SSAValue:
        properties = {"fastmathFlags": flags}
        return self.function.insert(
            op.create(operands=operands, result_types=[self.type], properties=properties)
        )


def broadcast(function: FunctionBuilder, number: SSAValue, into: SSAValue) -> SSAValue:
    """Broadcasts a value to all lanes.

    Args:
        into: any vector of the result's type; the result does not depend on its elements.
    """
    type_ = into.type
    assert isinstance(type_, VectorType)
    first = llvm.InsertElementOp.create(
        operands=[into, number, function.integer(0)], result_types=[type_]
    )
    value = function.insert(first)
    mask = i32_array(*[0] * type_.element_count())
    spread = llvm.ShuffleVectorOp.create(
        operands=[value, value], result_types=[type_], properties={"mask": mask}
    )
    return function.insert(spread)


def joined(function: FunctionBuilder, values: Sequence[SSAValue]) -> SSAValue:
    """Concatenates vectors of one type; their number is a power of two."""
    while len(values) > 1:
        values = [_pair(function, *values[at : at + 2]) for at in range(0, len(values), 2)]
    return values[0]


def _pair(function: FunctionBuilder, one: SSAValue, other: SSAValue) -> SSAValue:
    assert isinstance(one.type, VectorType)
    return shuffled(function, one, other, range(2 * one.type.element_count()))


def shuffled(
    function: FunctionBuilder, one: SSAValue, other: SSAValue, lanes: Sequence[int]
) -> SSAValue:
    """Shuffles two vectors of one type; `lanes` counts through both vectors."""
    return function.insert(shuffle(one, other, tuple(lanes)))


def split(function: FunctionBuilder, value: SSAValue, parts: int) -> list[SSAValue]:
    """Splits a vector into `parts` vectors of equal length."""
    assert isinstance(value.type, VectorType)
    lanes = value.type.element_count() // parts
    return [
        shuffled(function, value, value, range(first, first + lanes))
        for first in range(0, parts * lanes, lanes)
    ]


@cache
def splat(value: int, type_: VectorType[IntegerType]) -> DenseIntOrFPElementsAttr:
    """Returns an integer constant for all lanes."""
    return DenseIntOrFPElementsAttr.from_list(type_, [value] * type_.element_count())


@cache
def _splat(digits: str, lanes: int) -> DenseIntOrFPElementsAttr:
    """Returns a float constant for all lanes; the cache's key is hexadecimal text, since `0.0 ==
    -0.0`.
    """
    return DenseIntOrFPElementsAttr.from_list(
        vector_type(f32, lanes), [float.fromhex(digits)] * lanes
    )
