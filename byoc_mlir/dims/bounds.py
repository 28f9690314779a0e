"""Between which numbers a size lies, by interval arithmetic from the ranges of its symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TypeAlias

from byoc_mlir.dims.dim import (
    Atom,
    Call,
    Dim,
    Monomial,
    Size,
    Symbol,
    common_factor,
    divided,
    size_of,
    without_pairs,
)
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.errors import UndecidedSizeError

Number: TypeAlias = int | float
"""An integer, or an infinity."""
Range: TypeAlias = tuple[Number, Number]
"""The least and the greatest value, both included."""
Ranges: TypeAlias = Mapping[str, Range]
"""Of symbols; one that is missing is 0 or more."""

_DEPTH = 4
"""How many functions in a row are replaced to find a closer bound."""

_REPLACED = 64
"""How many functions are replaced in all. Each may bring others, as windows in a row nest them, and
what is not proved is asked of the call: a longer search would cost more than it is worth."""

_TRIED = (0, 1, 5, 64, 999, 1 << 15, 1 << 20)
"""What symbols are where a size is tried. Their number is prime, so each symbol is all of them."""


def bounds(size: Size, ranges: Ranges) -> Range:
    """Numbers that the size is never below, and never above."""
    return _Search(ranges).bounds(size)


@lru_cache(maxsize=4096)
def at_least_zero(size: Size) -> bool:
    """Whether the size is proved to be 0 or more, whatever its symbols are."""
    return not _is_seen_below_zero(size) and _Search({}).least(size, _DEPTH) >= 0


def _is_seen_below_zero(size: Size) -> bool:
    """Whether the size is less than 0 for some symbols that are tried: then there is no proof, and
    looking for one is what takes long.
    """
    count = len(_TRIED)
    strides = {name: place % (count - 1) + 1 for place, name in enumerate(sorted(symbols_of(size)))}
    for step in range(count):
        values = {name: _TRIED[step * stride % count] for name, stride in strides.items()}
        with suppress(UndecidedSizeError):  # a divisor is 0
            if evaluated(size, values) < 0:
                return True
    return False


class _Search:
    """The search for the bounds of one size, which remembers those of what is in it."""

    def __init__(self, ranges: Ranges):
        self._ranges = ranges
        self._known: dict[tuple[Size, int], Number] = {}
        self._left = _REPLACED

    def bounds(self, size: Size) -> Range:
        return self.least(size, _DEPTH), -self.least(-size, _DEPTH)

    def least(self, size: Size, depth: int) -> Number:
        """The best lower bound: plain intervals, or those after a function has been replaced."""
        if not isinstance(size, Dim):
            return size
        key = (size, depth)
        if key not in self._known:
            self._known[key] = self._least(without_pairs(size), depth)
        return self._known[key]

    def _least(self, size: Size, depth: int) -> Number:
        if not isinstance(size, Dim):
            return size
        factor = common_factor([size])
        if factor > 1:  # what is rounded below is rounded less
            return factor * self.least(divided(size, factor), depth)
        best = self._interval(size)[0]
        if best >= 0 or not depth:
            return best
        for item in _functions(size):
            if not self._left:
                break
            self._left -= 1
            best = max(best, self._least_without(size, item, depth - 1))
        return best

    def _least_without(self, size: Dim, item: Call, depth: int) -> Number:
        """A lower bound of the size, found by putting arguments in the place of a function."""
        factor = dict(size.terms)[(item,)]
        rest = size - size_of({(item,): factor})
        if item.kind == "floordiv":
            dividend, divisor = item.arguments
            if isinstance(divisor, Dim):
                return -math.inf
            # divisor * quotient is at most the dividend, and at least that less (divisor - 1)
            low = dividend if factor < 0 else dividend - (divisor - 1)
            found = self.least(rest * divisor + low * factor, depth)
            return found if math.isinf(found) else -(-found // divisor)
        found = [self.least(rest + one * factor, depth) for one in item.arguments]
        at_every_argument = (item.kind == "max") == (factor > 0)
        return max(found) if at_every_argument else min(found)

    def _interval(self, size: Dim) -> Range:
        low: Number = 0
        high: Number = 0
        for monomial, factor in size.terms:
            one, two = _times((factor, factor), self._monomial(monomial))
            low, high = low + one, high + two
        return low, high

    def _monomial(self, monomial: Monomial) -> Range:
        found: Range = (1, 1)
        for item in monomial:
            found = _times(found, self._atom(item))
        return found

    def _atom(self, item: Atom) -> Range:
        if isinstance(item, Symbol):
            return self._ranges.get(item.name, (0, math.inf))
        found = [self.bounds(argument) for argument in item.arguments]
        if item.kind == "floordiv":
            return _quotient(*found)
        choose: Callable[[Iterable[Number]], Number] = max if item.kind == "max" else min
        return choose(low for low, _ in found), choose(high for _, high in found)


def _functions(size: Dim) -> Iterable[Call]:
    """The functions that occur once as a term of their own, in no product."""
    atoms = [item for monomial, _ in size.terms for item in monomial if isinstance(item, Call)]
    alone = {monomial[0] for monomial, _ in size.terms if len(monomial) == 1}
    return [item for item in dict.fromkeys(atoms) if item in alone and atoms.count(item) == 1]


def _quotient(dividend: Range, divisor: Range) -> Range:
    if divisor[0] < 1:
        return (0, math.inf) if dividend[0] >= 0 and divisor[0] >= 0 else (-math.inf, math.inf)
    corners = [_floor(one, two) for one in dividend for two in divisor]
    return min(corners), max(corners)


def _floor(one: Number, two: Number) -> Number:
    if math.isinf(two):
        return -1 if one < 0 else 0
    return one if math.isinf(one) else one // two


def _times(one: Range, two: Range) -> Range:
    corners = [_product(a, b) for a in one for b in two]
    return min(corners), max(corners)


def _product(one: Number, two: Number) -> Number:
    return 0 if one == 0 or two == 0 else one * two
