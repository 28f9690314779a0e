"""Pairs of values in place of all combinations: most mistakes show with a pair."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

_Choice: TypeAlias = tuple[str, Hashable]
_Pair: TypeAlias = tuple[_Choice, _Choice]


def covering_pairs(points: Sequence[Mapping[str, Hashable]]) -> list[int]:
    """Selects points so that each value occurs with each value of every other axis.

    The point with the most new pairs is taken first; among equals, the one with the lowest number.

    Args:
        points: the value on each axis, by the axis' name.

    Returns:
        The numbers of the points, in order. Pairs that no point has are not required.
    """
    pairs = [_pairs(point) for point in points]
    missing = {pair for of_point in pairs for pair in of_point}
    chosen: list[int] = []
    while missing:
        best = max(range(len(points)), key=lambda number: len(pairs[number] & missing))
        missing -= pairs[best]
        chosen.append(best)
    return sorted(chosen)


def _pairs(point: Mapping[str, Hashable]) -> set[_Pair]:
    """Returns the pairs of a point's values, each value with itself, too, so that the values of a
    single axis are covered.
    """
    choices = [(axis, point[axis]) for axis in sorted(point)]
    return {(one, one) for one in choices} | {*combinations(choices, 2)}
