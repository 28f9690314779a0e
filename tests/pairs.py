"""Pairs of values in place of all combinations: most mistakes need no more than two to show."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

_Choice: TypeAlias = tuple[str, Hashable]
_Pair: TypeAlias = tuple[_Choice, _Choice]


def covering_pairs(points: Sequence[Mapping[str, Hashable]]) -> list[int]:
    """Which points are enough for each value to stand with each value of every other axis.

    The one that has the most pairs that are new comes first; of those that have as many, the one
    with the least number.

    Args:
        points: the value on each axis, by the axis' name.

    Returns:
        The numbers of the points, in their order. All that can be paired is: what no point has
        together is not asked for.
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
    """With itself, too, so that the values of one axis alone are all there."""
    choices = [(axis, point[axis]) for axis in sorted(point)]
    return {(one, one) for one in choices} | {*combinations(choices, 2)}
