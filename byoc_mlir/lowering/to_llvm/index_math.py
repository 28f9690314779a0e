"""Index arithmetic that is folded at compile time if both operands are known."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import SSAValue

Bound = SSAValue | int
"""Index that is known at run time or at compile time."""

_NO_WRAP = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])


def bound(value: SSAValue) -> Bound:
    """Returns the integer if the value is a constant, else the value."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return value


class IndexMath:
    """Builder of index arithmetic; operands of divisions are not negative."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def value(self, number: Bound) -> SSAValue:
        """Returns an index as an SSA value."""
        if isinstance(number, SSAValue):
            return number
        constant = arith.ConstantOp.from_int_and_width(number, IndexType())
        return self._builder.insert(constant).result

    def add(self, lhs: Bound, rhs: Bound) -> Bound:
        if lhs == 0 or rhs == 0:
            return rhs if lhs == 0 else lhs
        return self._binary(_no_wrap(arith.AddiOp), lambda a, b: a + b, lhs, rhs)

    def subtract(self, lhs: Bound, rhs: Bound) -> Bound:
        if rhs == 0:
            return lhs
        return self._binary(_no_wrap(arith.SubiOp), lambda a, b: a - b, lhs, rhs)

    def multiply(self, lhs: Bound, rhs: Bound) -> Bound:
        if lhs == 1 or rhs == 1:
            return rhs if lhs == 1 else lhs
        return self._binary(_no_wrap(arith.MuliOp), lambda a, b: a * b, lhs, rhs)

    def divide(self, lhs: Bound, rhs: Bound) -> Bound:
        if rhs == 1:
            return lhs
        return self._binary(arith.DivUIOp, lambda a, b: a // b, lhs, rhs)

    def ceil_divide(self, lhs: Bound, rhs: Bound) -> Bound:
        if rhs == 1:
            return lhs
        return self.divide(self.add(lhs, self.subtract(rhs, 1)), rhs)

    def remainder(self, lhs: Bound, rhs: Bound) -> Bound:
        if rhs == 1:
            return 0
        return self._binary(arith.RemUIOp, lambda a, b: a % b, lhs, rhs)

    def minimum(self, lhs: Bound, rhs: Bound) -> Bound:
        return self._binary(arith.MinSIOp, min, lhs, rhs)

    def maximum(self, lhs: Bound, rhs: Bound) -> Bound:
        return self._binary(arith.MaxSIOp, max, lhs, rhs)

    def trip_count(self, lower: Bound, upper: Bound, step: Bound) -> Bound:
        """Emits the trip count of a loop from `lower` to `upper` by `step`."""
        return self.ceil_divide(self.maximum(self.subtract(upper, lower), 0), step)

    def _binary(
        self,
        make: Callable[[SSAValue, SSAValue], arith.SignlessIntegerBinaryOperation],
        fold: Callable[[int, int], int],
        lhs: Bound,
        rhs: Bound,
    ) -> Bound:
        if isinstance(lhs, int) and isinstance(rhs, int):
            return fold(lhs, rhs)
        return self._builder.insert(make(self.value(lhs), self.value(rhs))).result


def _no_wrap(
    op: type[arith.SignlessIntegerBinaryOperationWithOverflow],
) -> Callable[[SSAValue, SSAValue], arith.SignlessIntegerBinaryOperation]:
    return lambda lhs, rhs: op(lhs, rhs, overflow=_NO_WRAP)
