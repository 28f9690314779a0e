"""Overflow checks for sizes that native code computes in `i64`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from byoc_mlir.dims.bounds import Ranges
from byoc_mlir.dims.dim import Atom, Monomial, Size, Symbol, atom, floordiv, size_of, terms_of
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.errors import UndecidedSizeError

GREATEST_SIZE = (1 << 31) - 1
"""Largest size of a symbol in a shape-polymorphic program; larger axes get a specialisation."""

OVERFLOW = 1 << 62
"""Upper limit of all values in the computation of sizes, with room in `i64` for one addition."""


def overflow(sizes: Iterable[Size], bound: Ranges) -> Size:
    """Returns a size that is 0 if computing all of `sizes` stays below `OVERFLOW`.

    It is `OVERFLOW` or more if a computation may reach that.

    Args:
        sizes: computed by native code.
        bound: ranges of the symbols that are not given by a call.

    Raises:
        UndecidedSizeError: computing a size overflows for all values of its symbols.
    """
    most: dict[Monomial, int] = {}
    for size in set(sizes):
        reached = _reached(size, bound)
        if evaluated(reached, dict.fromkeys(symbols_of(reached), GREATEST_SIZE)) < OVERFLOW:
            continue
        for monomial, factor in terms_of(reached):
            most[monomial] = max(factor, most.get(monomial, 0))
    if most.get((), 0) >= OVERFLOW:
        raise UndecidedSizeError("computing a size overflows, whatever its symbols are")
    return floordiv(size_of(most), OVERFLOW) * OVERFLOW


def _reached(size: Size, bound: Ranges) -> Size:
    """Returns a sum of products of symbols that no partial result exceeds."""
    total: Size = 0
    for monomial, factor in terms_of(size):
        product: Size = abs(factor)
        for item in monomial:
            product = product * _reached_by(item, bound)
        total = total + product
    return total


def _reached_by(item: Atom, bound: Ranges) -> Size:
    if isinstance(item, Symbol):
        _, most = bound.get(item.name, (0, math.inf))
        if item.name not in bound:
            return atom(item)
        return GREATEST_SIZE if math.isinf(most) else int(most)
    total: Size = 0
    for argument in item.arguments:
        total = total + _reached(argument, bound)
    return total
