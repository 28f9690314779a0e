"""Few points in place of all combinations: most mistakes show with one value, or with a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

_Choice: TypeAlias = tuple[str, Hashable]
_Choices: TypeAlias = tuple[_Choice, ...]


def covering(points: Sequence[Mapping[str, Hashable]], size: Literal[1, 2]) -> list[int]:
    """Selects points so that each value occurs; with a size of 2, with each value of every other
    axis.

    The point with the most new values or pairs is taken first; among equals, the one whose values
    or pairs occur least so far, then the one with the lowest number.

    Args:
        points: the value on each axis, by the axis' name.

    Returns:
        The numbers of the points, in order. Pairs that no point has are not required.
    """
    choices = [_choices(point, size) for point in points]
    missing = {one for of_point in choices for one in of_point}
    uses: Counter[_Choices] = Counter()
    chosen: list[int] = []

    def gain(number: int) -> tuple[int, int]:
        return len(choices[number] & missing), -sum(uses[one] for one in choices[number])

    while missing:
        best = max(range(len(points)), key=gain)
        missing -= choices[best]
        uses.update(one for one in choices[best] if len(one) == size)
        chosen.append(best)
    return sorted(chosen)


def _choices(point: Mapping[str, Hashable], size: Literal[1, 2]) -> set[_Choices]:
    """Returns the values of a point, and its pairs of values if `size` is 2."""
    choices = [(axis, point[axis]) for axis in sorted(point)]
    return {each for count in range(1, size + 1) for each in combinations(choices, count)}
