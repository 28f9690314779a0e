"""What is true of sizes whatever their symbols are, in the ranges of those."""

from __future__ import annotations

from collections.abc import Callable

from byoc_mlir.dims.bounds import Range
from byoc_mlir.dims.dim import Dim, Size, common_factor, constant_part


def proved_same(one: Size, two: Size, bounds: Callable[[Size], Range]) -> bool | None:
    """Whether two sizes are always equal, or never; `None` when it is not known to be either.

    Args:
        bounds: gives numbers that a size is never below, and never above.
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
    """Whether `one <= two` always holds, or never; `None` when it is not known to be either.

    Args:
        bounds: gives numbers that a size is never below, and never above.
    """
    low, high = bounds(two - one)
    if low >= 0:
        return True
    return False if high < 0 else None
