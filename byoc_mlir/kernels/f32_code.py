"""Writers of formulas on `f32` values, with `f64` where an intermediate result needs it."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    f32,
    i32,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

_CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
_EXPONENT_BIAS = 127
LOG2_E = 1.44269504
MANTISSA_BITS = 23
TO_INTEGER = 1.5 * 2.0**MANTISSA_BITS
"""Magic number: added to a value below 2^22, it leaves the nearest integer in the lowest bits."""

INFINITY = float("inf")
NAN = float("nan")


class FloatCode(ABC):
    """Writer of formulas on `f32`, with the ops of one dialect.

    LLVM may contract products and sums to FMAs. It must not reorder other ops: the bit tricks and
    the split constants of the formulas depend on every rounding.
    """

    @abstractmethod
    def number(self, value: float) -> SSAValue:
        """Returns a constant."""

    @abstractmethod
    def add(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """Computes `lhs + rhs`."""

    @abstractmethod
    def multiply(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """Computes `lhs * rhs`."""

    @abstractmethod
    def divide(self, lhs: SSAValue | float, rhs: SSAValue) -> SSAValue:
        """Computes `lhs / rhs`."""

    @abstractmethod
    def select(
        self, condition: SSAValue, then: SSAValue | float, otherwise: SSAValue | float
    ) -> SSAValue:
        """Returns `then` if `condition` holds, otherwise `otherwise`."""

    @abstractmethod
    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """Compares two values, to an `i1`."""

    def polynomial(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """Computes `c0 + c1 x + c2 x^2 + ...` by Horner's rule."""
        *rest, value = [self.number(coefficient) for coefficient in coefficients]
        for coefficient in reversed(rest):
            value = self.add(self.multiply(value, x), coefficient)
        return value

    def at_most(self, x: SSAValue, bound: float) -> SSAValue:
        """Returns the smaller of `x` and `bound`, or NaN if `x` is NaN."""
        return self.select(self.compare("ogt", x, bound), bound, x)

    def at_least(self, x: SSAValue, bound: float) -> SSAValue:
        """Returns the larger of `x` and `bound`, or NaN if `x` is NaN."""
        return self.select(self.compare("olt", x, bound), bound, x)


class F32Code(FloatCode):
    """Writer of formulas that appends `arith` and `math` ops through a builder."""

    def __init__(self, builder: Builder, location: LocationAttr) -> None:
        self._builder = builder
        self._location = location

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its result."""
        op.location = self._location
        return self._builder.insert(op).results[0]

    def number(self, value: float, type_: Attribute = f32) -> SSAValue:
        """Returns a constant of a float type."""
        assert isinstance(type_, Float32Type | Float64Type)
        return self.emit(arith.ConstantOp(FloatAttr(value, type_)))

    def integer(self, value: int) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(value, i32)))

    def add(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.emit(arith.AddfOp(lhs, self._value(rhs, lhs.type), _CONTRACT))

    def subtract(self, lhs: SSAValue | float, rhs: SSAValue) -> SSAValue:
        return self.emit(arith.SubfOp(self._value(lhs, rhs.type), rhs, _CONTRACT))

    def multiply(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.emit(arith.MulfOp(lhs, self._value(rhs, lhs.type), _CONTRACT))

    def divide(self, lhs: SSAValue | float, rhs: SSAValue) -> SSAValue:
        return self.emit(arith.DivfOp(self._value(lhs), rhs))

    def select(
        self, condition: SSAValue, then: SSAValue | float, otherwise: SSAValue | float
    ) -> SSAValue:
        return self.emit(arith.SelectOp(condition, self._value(then), self._value(otherwise)))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.emit(arith.CmpfOp(lhs, self._value(rhs), predicate))

    def absolute(self, x: SSAValue) -> SSAValue:
        """Computes `|x|`."""
        return self.emit(math.AbsFOp(x))

    def square_root(self, x: SSAValue) -> SSAValue:
        """Computes `sqrt(x)`."""
        return self.emit(math.SqrtOp(x))

    def with_sign_of(self, magnitude: SSAValue, sign: SSAValue) -> SSAValue:
        """Returns `magnitude` with the sign of `sign`."""
        return self.emit(math.CopySignOp(magnitude, sign))

    def bits(self, x: SSAValue) -> SSAValue:
        """Returns the bits of an `f32` as an `i32`."""
        return self.emit(arith.BitcastOp(x, i32))

    def from_bits(self, bits: SSAValue) -> SSAValue:
        """Returns the `f32` with these bits."""
        return self.emit(arith.BitcastOp(bits, f32))

    def power_of_two(self, exponent: SSAValue) -> SSAValue:
        """Computes `2^exponent` for an `i32` in [-126, 127]."""
        biased = self.emit(arith.AddiOp(exponent, self.integer(_EXPONENT_BIAS)))
        return self.from_bits(self.emit(arith.ShLIOp(biased, self.integer(MANTISSA_BITS))))

    def nearest_integer(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Rounds a float of magnitude below 2^22 to the nearest integer, as a float and an `i32`.

        Adding 1.5 * 2^23 leaves the integer in the lowest bits of the sum.
        """
        magic = self.number(TO_INTEGER)
        shifted = self.emit(arith.AddfOp(x, magic))
        rounded = self.emit(arith.SubfOp(shifted, magic))
        magic_bits = self.integer(struct.unpack("<i", struct.pack("<f", TO_INTEGER))[0])
        return rounded, self.emit(arith.SubiOp(self.bits(shifted), magic_bits))

    def _value(self, value: SSAValue | float, type_: Attribute = f32) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.number(value, type_)
