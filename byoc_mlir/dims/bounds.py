"""Bounds of sizes by interval arithmetic from the ranges of their symbols; `max` and `min`.

The maximum and the minimum of sizes have a canonical form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TypeAlias

from byoc_mlir.dims.dim import (
    Atom,
    Dim,
    Kind,
    Monomial,
    Size,
    SizeFunction,
    Symbol,
    atom,
    common_factor,
    constant_part,
    divided,
    floordiv,
    pair_of,
    size_of,
    symbol,
    terms_of,
)
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.errors import UndecidedSizeError

Number: TypeAlias = int | float
"""Integer, or an infinity."""
Range: TypeAlias = tuple[Number, Number]
"""Minimum and maximum, both included."""
Ranges: TypeAlias = Mapping[str, Range]
"""Ranges of symbols; a symbol without one is 0 or more."""

_DEPTH = 4
"""Maximum number of nested functions that are replaced to tighten a bound."""

_REPLACED = 64
"""Maximum number of functions that are replaced in one search.

Replacing one may bring others, as consecutive windows nest them. An undecided comparison becomes a
check of the call, so that a longer search does not pay.
"""

_TRIED = (0, 1, 5, 64, 999, 1 << 15, 1 << 20)
"""Values of symbols in trials; the count is prime, so that each symbol takes all of them."""


def bounds(size: Size, ranges: Ranges) -> Range:
    """Returns a lower and an upper bound of the size."""
    return _Search(ranges).bounds(size)


@lru_cache(maxsize=4096)
def at_least_zero(size: Size) -> bool:
    """True if the size is proved to be 0 or more for all values of its symbols."""
    return not _is_seen_below_zero(size) and _Search({}).least(size, _DEPTH) >= 0


def _is_seen_below_zero(size: Size) -> bool:
    """True if the size is negative for some trial values of its symbols.

    Then no proof exists, and the long search for one is skipped.
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
    """Search for the bounds of one size; caches the bounds of its parts."""

    def __init__(self, ranges: Ranges):
        self._ranges = ranges
        self._known: dict[tuple[Size, int], Number] = {}
        self._left = _REPLACED

    def bounds(self, size: Size) -> Range:
        return self.least(size, _DEPTH), -self.least(-size, _DEPTH)

    def least(self, size: Size, depth: int) -> Number:
        """Returns the best lower bound: from plain intervals, or after replacing a function."""
        if not isinstance(size, Dim):
            return size
        key = (size, depth)
        if key not in self._known:
            self._known[key] = self._least(_without_pairs(size), depth)
        return self._known[key]

    def _least(self, size: Size, depth: int) -> Number:
        if not isinstance(size, Dim):
            return size
        factor = common_factor([size])
        if factor > 1:  # smaller coefficients round less
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

    def _least_without(self, size: Dim, item: SizeFunction, depth: int) -> Number:
        """Returns a lower bound of the size, found by replacing a function by its arguments."""
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


def _without_pairs(size: Size) -> Size:
    """Returns the size with `a + b` in place of `max(a, b) + min(a, b)`.

    Canonical sums are not rewritten so: `max(a, b) + min(a, b) - min(a, b)` would become `a + b -
    min(a, b)` or `max(a, b)`, depending on the order.
    """
    while found := pair_of(size):
        pair, total, factor = found
        size = size + factor * (total - pair)
    return size


def _functions(size: Dim) -> Iterable[SizeFunction]:
    """Returns the functions that occur once, as a term without other factors."""
    atoms = [
        item for monomial, _ in size.terms for item in monomial if isinstance(item, SizeFunction)
    ]
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


def largest(*sizes: Size) -> Size:
    """Returns the maximum; an argument that never exceeds another one is dropped."""
    return _extreme("max", sizes)


def smallest(*sizes: Size) -> Size:
    """Returns the minimum; an argument that is never less than another one is dropped."""
    return _extreme("min", sizes)


def _extreme(kind: Kind, sizes: Sequence[Size]) -> Size:
    if len(set(sizes)) == 1:
        return sizes[0]
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        return max(numbers) if kind == "max" else min(numbers)
    kept = _undominated(kind, dict.fromkeys(_flattened(kind, sizes)))
    if len(kept) == 1:
        return kept[0]
    common = size_of({m: factor for m, factor in _common_terms(kept).items() if m})
    kept = [size - common for size in kept]
    if _is_reversed(kind, kept):  # the minimum of negated sizes is the negated maximum
        other: Kind = "min" if kind == "max" else "max"
        return common - _scaled(other, [-size for size in kept])
    return common + _scaled(kind, kept)


def _flattened(kind: Kind, sizes: Iterable[Size]) -> Iterable[Size]:
    """Yields the sizes, with arguments in place of sizes that are such an extreme themselves."""
    for size in sizes:
        terms = terms_of(size)
        calls = [
            monomial[0]
            for monomial, factor in terms
            if len(monomial) == 1 and _is_call(monomial[0], kind, factor)
        ]
        if len(calls) == 1:
            factor = dict(terms)[(calls[0],)]
            rest = size - size_of({(calls[0],): factor})
            assert isinstance(calls[0], SizeFunction)
            yield from _flattened(kind, [rest + item * factor for item in calls[0].arguments])
        else:
            yield size


def _is_call(item: Atom, kind: Kind, factor: int) -> bool:
    """True if `factor * item` is an extreme of this kind; a negative factor reverses it."""
    if not isinstance(item, SizeFunction) or item.kind == "floordiv":
        return False
    return (item.kind == kind) == (factor > 0)


def _undominated(kind: Kind, sizes: Iterable[Size]) -> list[Size]:
    kept: list[Size] = []
    for size in sorted(sizes, key=str):
        if any(_reaches(kind, other, size) for other in kept):
            continue
        kept = [other for other in kept if not _reaches(kind, size, other)]
        kept.append(size)
    return kept


def _reaches(kind: Kind, one: Size, two: Size) -> bool:
    return at_least_zero(one - two if kind == "max" else two - one)


def _common_terms(sizes: Sequence[Size]) -> dict[Monomial, int]:
    """Returns the terms that all sizes have."""
    others = [dict(terms_of(size)) for size in sizes[1:]]
    return {
        monomial: factor
        for monomial, factor in terms_of(sizes[0])
        if all(other.get(monomial) == factor for other in others)
    }


def _is_reversed(kind: Kind, sizes: Sequence[Size]) -> bool:
    """True if the negated sizes are the canonical form, in any order of the sizes."""
    varying = [size - constant_part(size) for size in sizes]
    total: Size = 0
    for size in varying:
        total = total + size
    if total != 0:
        return terms_of(total)[0][1] < 0
    one, other = sorted(map(str, varying)), sorted(str(-size) for size in varying)
    return kind == "min" if one == other else one < other


def _scaled(kind: Kind, sizes: Sequence[Size]) -> Size:
    """Returns an extreme with a constant term and the common factor of its arguments extracted."""
    varying = {size: size - constant_part(size) for size in sizes}
    shared = common_factor(varying.values())
    ordered = sorted(sizes, key=lambda size: str(divided(varying[size], shared)))
    number = next(constant_part(size) for size in ordered if isinstance(size, Dim))
    moved = [size - number for size in ordered]
    factor = common_factor(moved)
    arguments = sorted((divided(size, factor) for size in moved), key=_argument_order)
    return number + factor * atom(SizeFunction(kind, tuple(arguments)))


def _argument_order(size: Size) -> tuple[bool, str]:
    return isinstance(size, int), str(size)


def substituted(size: Size, values: Mapping[str, Size]) -> Size:
    """Returns the size with other sizes substituted for symbols; symbols without a value stay."""
    total: Size = 0
    for monomial, factor in terms_of(size):
        product: Size = factor
        for item in monomial:
            product = product * _value_of(item, values)
        total = total + product
    return total


def _value_of(item: Atom, values: Mapping[str, Size]) -> Size:
    if isinstance(item, Symbol):
        return values.get(item.name, symbol(item.name))
    arguments = [substituted(argument, values) for argument in item.arguments]
    if item.kind == "floordiv":
        return floordiv(*arguments)
    return _extreme(item.kind, arguments)
