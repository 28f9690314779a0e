"""Proofs of relations between sizes that hold for all symbols in their ranges."""

from __future__ import annotations

from collections.abc import Callable

from byoc_mlir.dims.bounds import Range
from byoc_mlir.dims.dim import Dim, Size, common_factor, constant_part


def proved_same(one: Size, two: Size, bounds: Callable[[Size], Range]) -> bool | None:
    """True if two sizes are always equal, `False` if never; `None` if neither is proved.

    Args:
        bounds: returns a lower and an upper bound of a size.
    """
    difference = one - two
    if not isinstance(difference, Dim):
        return difference == 0
    low, high = bounds(difference)
    if low > 0 or high < 0:
        return False
    if low == high:
        return True  # of a range that is one number, which is 0
    number = constant_part(difference)
    if number % common_factor([difference - number]):  # 2 * n + 1 is not 0 for any n
        return False
    return None


def proved_at_most(one: Size, two: Size, bounds: Callable[[Size], Range]) -> bool | None:
    """True if `one <= two` always holds, `False` if never; `None` if neither is proved.

    Args:
        bounds: returns a lower and an upper bound of a size.
    """
    low, high = bounds(two - one)
    if low >= 0:
        return True
    return False if high < 0 else None
