"""Maximum of a size over the ranges of some of its symbols."""

from __future__ import annotations

import math

from byoc_mlir.dims.bounds import Ranges, at_least_zero, largest, smallest
from byoc_mlir.dims.dim import Atom, Dim, Size, SizeFunction, Symbol, atom, floordiv, terms_of
from byoc_mlir.dims.evaluate import symbols_of
from byoc_mlir.errors import UndecidedSizeError


def greatest(size: Size, ranges: Ranges) -> Size:
    """Returns the maximum of a size, in terms of the symbols that have no range here.

    Raises:
        UndecidedSizeError: the size has no upper bound.
    """
    most = _Reach(ranges).end(size, is_upper=True)
    if most is None:
        raise UndecidedSizeError(f"the size {size} has no upper bound")
    return most


class _Reach:
    """Replacement of symbols by the end of their range that makes a size large or small."""

    def __init__(self, ranges: Ranges):
        self._ranges = ranges

    def end(self, size: Size, *, is_upper: bool) -> Size | None:
        """Returns the upper or the lower bound; `None` if there is none."""
        if not isinstance(size, Dim) or self._is_free(size):
            return size
        total: Size = 0
        for monomial, factor in terms_of(size):
            product: Size = factor
            for item in monomial:
                found = self._atom(item, is_upper=is_upper == (factor > 0))
                if found is None or not (len(monomial) == 1 or at_least_zero(found)):
                    return None
                product = product * found
            total = total + product
        return total

    def _is_free(self, size: Size) -> bool:
        return not isinstance(size, Dim) or self._ranges.keys().isdisjoint(symbols_of(size))

    def _atom(self, item: Atom, *, is_upper: bool) -> Size | None:
        if isinstance(item, Symbol):
            low, high = self._ranges.get(item.name, (None, None))
            end = high if is_upper else low
            if end is None:
                return atom(item)
            return None if math.isinf(end) else int(end)
        return self._call(item, is_upper=is_upper)

    def _call(self, item: SizeFunction, *, is_upper: bool) -> Size | None:
        if item.kind == "floordiv":
            dividend, divisor = item.arguments
            end = self.end(dividend, is_upper=is_upper)
            return None if end is None or not self._is_free(divisor) else floordiv(end, divisor)
        ends = [self.end(argument, is_upper=is_upper) for argument in item.arguments]
        known = [end for end in ends if end is not None]
        # a minimum is at most any of its arguments, a maximum at least
        if len(known) < len(ends) and (not known or (item.kind == "min") != is_upper):
            return None
        return (largest if item.kind == "max" else smallest)(*known)
