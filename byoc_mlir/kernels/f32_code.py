"""Formulas on f32 values, and on f64 where one is needed on the way."""

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
"""Added to a number below 2^22, it leaves the nearest integer in the lowest bits."""

INFINITY = float("inf")
NAN = float("nan")


class FloatCode(ABC):
    """Writes formulas on `f32`, with the ops of some dialect.

    Products and sums may be contracted to fused multiply-adds, and nothing else: the bit tricks and
    the split constants of the formulas rely on every rounding.
    """

    @abstractmethod
    def number(self, value: float) -> SSAValue:
        """A constant."""

    @abstractmethod
    def add(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """`lhs + rhs`."""

    @abstractmethod
    def multiply(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """`lhs * rhs`."""

    @abstractmethod
    def divide(self, lhs: SSAValue | float, rhs: SSAValue) -> SSAValue:
        """`lhs / rhs`."""

    @abstractmethod
    def select(
        self, condition: SSAValue, then: SSAValue | float, otherwise: SSAValue | float
    ) -> SSAValue:
        """One value or the other."""

    @abstractmethod
    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        """An `i1`."""

    def polynomial(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """`c0 + c1 x + c2 x^2 + ...`, by Horner's rule."""
        *rest, value = [self.number(coefficient) for coefficient in coefficients]
        for coefficient in reversed(rest):
            value = self.add(self.multiply(value, x), coefficient)
        return value

    def at_most(self, x: SSAValue, bound: float) -> SSAValue:
        """The smaller of both; a NaN stays."""
        return self.select(self.compare("ogt", x, bound), bound, x)

    def at_least(self, x: SSAValue, bound: float) -> SSAValue:
        """The larger of both; a NaN stays."""
        return self.select(self.compare("olt", x, bound), bound, x)


class F32Code(FloatCode):
    """Appends `arith` and `math` ops through a builder."""

    def __init__(self, builder: Builder, location: LocationAttr) -> None:
        self._builder = builder
        self._location = location

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its result."""
        op.location = self._location
        return self._builder.insert(op).results[0]

    def number(self, value: float, type_: Attribute = f32) -> SSAValue:
        """A constant of a float type."""
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
        """`|x|`."""
        return self.emit(math.AbsFOp(x))

    def with_sign_of(self, magnitude: SSAValue, sign: SSAValue) -> SSAValue:
        """A magnitude with the sign of another value."""
        return self.emit(math.CopySignOp(magnitude, sign))

    def bits(self, x: SSAValue) -> SSAValue:
        """The bits of a float, as an i32."""
        return self.emit(arith.BitcastOp(x, i32))

    def from_bits(self, bits: SSAValue) -> SSAValue:
        """The float with these bits."""
        return self.emit(arith.BitcastOp(bits, f32))

    def power_of_two(self, exponent: SSAValue) -> SSAValue:
        """2 to an i32 in [-126, 127]."""
        biased = self.emit(arith.AddiOp(exponent, self.integer(_EXPONENT_BIAS)))
        return self.from_bits(self.emit(arith.ShLIOp(biased, self.integer(MANTISSA_BITS))))

    def nearest_integer(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The nearest integer of a float of magnitude below 2^22, as a float and as an i32.

        Adding 1.5 * 2^23 leaves the integer in the lowest bits of the sum.
        """
        magic = self.number(TO_INTEGER)
        shifted = self.emit(arith.AddfOp(x, magic))
        rounded = self.emit(arith.SubfOp(shifted, magic))
        magic_bits = self.integer(struct.unpack("<i", struct.pack("<f", TO_INTEGER))[0])
        return rounded, self.emit(arith.SubiOp(self.bits(shifted), magic_bits))

    def _value(self, value: SSAValue | float, type_: Attribute = f32) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.number(value, type_)
