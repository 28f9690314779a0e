"""Maximum of a size over the ranges of some of its symbols."""

from __future__ import annotations

import math

from byoc_mlir.dims.bounds import Ranges, at_least_zero, largest, smallest
from byoc_mlir.dims.dim import Atom, Dim, Size, SizeFunction, atom, floordiv, terms_of
from byoc_mlir.dims.evaluate import symbols_of
from byoc_mlir.errors import UndecidedSizeError


def greatest(size: Size, ranges: Ranges) -> Size:
    """Returns the maximum of a size, in terms of the symbols that have no range here.

    Raises:
        UndecidedSizeError: the size has no upper bound.
    """
    most = _end(size, ranges, is_upper=True)
    if most is None:
        raise UndecidedSizeError(f"the size {size} has no upper bound")
    return most


def _end(size: Size, ranges: Ranges, *, is_upper: bool) -> Size | None:
    """Returns the upper or the lower bound; `None` if there is none.

    Each symbol is replaced by the end of its range that makes the size large or small.
    """
    if not isinstance(size, Dim) or _is_free(size, ranges):
        return size
    total: Size = 0
    for monomial, factor in terms_of(size):
        product: Size = factor
        for item in monomial:
            found = _end_of_atom(item, ranges, is_upper=is_upper == (factor > 0))
            if found is None or not (len(monomial) == 1 or at_least_zero(found)):
                return None
            product = product * found
        total = total + product
    return total


def _is_free(size: Size, ranges: Ranges) -> bool:
    return not isinstance(size, Dim) or ranges.keys().isdisjoint(symbols_of(size))


def _end_of_atom(item: Atom, ranges: Ranges, *, is_upper: bool) -> Size | None:
    if isinstance(item, SizeFunction):
        return _end_of_call(item, ranges, is_upper=is_upper)
    low, high = ranges.get(item.name, (None, None))
    end = high if is_upper else low
    if end is None:
        return atom(item)
    return None if math.isinf(end) else int(end)


def _end_of_call(item: SizeFunction, ranges: Ranges, *, is_upper: bool) -> Size | None:
    if item.kind == "floordiv":
        dividend, divisor = item.arguments
        end = _end(dividend, ranges, is_upper=is_upper)
        return None if end is None or not _is_free(divisor, ranges) else floordiv(end, divisor)
    ends = [_end(argument, ranges, is_upper=is_upper) for argument in item.arguments]
    known = [end for end in ends if end is not None]
    # a minimum is at most any of its arguments, a maximum at least
    if len(known) < len(ends) and (not known or (item.kind == "min") != is_upper):
        return None
    return (largest if item.kind == "max" else smallest)(*known)
