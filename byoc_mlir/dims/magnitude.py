"""Sizes that native code computes: whether `i64` has room for all that is computed on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable

from byoc_mlir.dims.bounds import Ranges
from byoc_mlir.dims.dim import Atom, Monomial, Size, Symbol, atom, floordiv, size_of, terms_of
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.errors import UndecidedSizeError

GREATEST_SIZE = (1 << 31) - 1
"""Largest size of a symbol in a program for many sizes; larger axes get programs of their own."""

OVERFLOW = 1 << 62
"""What is computed of sizes is less, one addition apart from the end of `i64`."""


def overflow(sizes: Iterable[Size], bound: Ranges) -> Size:
    """Returns a size that is 0 where computing all of `sizes` needs less than `OVERFLOW`, and
    `OVERFLOW` or more where it may need more.

    Args:
        sizes: computed by native code.
        bound: ranges of the symbols that are not given by a call.

    Raises:
        UndecidedSizeError: computing one of them overflows, whatever its symbols are.
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
