"""Stacked parameters: each value occurs, alone or with each value of every other parameter."""

from __future__ import annotations

from itertools import combinations, product
from typing import Literal

import pytest
from covering import covering


def _points(*sizes: int) -> list[dict[str, int]]:
    return [dict(zip("abcde", point, strict=False)) for point in product(*map(range, sizes))]


@pytest.mark.parametrize(
    ("size", "sizes", "most"),
    [
        *((2, (3,), 3), (2, (3, 4), 12), (2, (2, 2, 2), 5), (2, (7, 3, 2), 22)),
        *((2, (2, 2, 2, 2, 2), 8), (1, (3,), 3), (1, (3, 4), 4), (1, (7, 3, 2), 7)),
    ],
)
def test_every_choice_is_there_and_few_points_are(
    size: Literal[1, 2], sizes: tuple[int, ...], most: int
) -> None:
    points = _points(*sizes)
    kept = [points[number] for number in covering(points, size)]
    assert len(kept) <= most
    for axes in combinations("abcde"[: len(sizes)], min(size, len(sizes))):
        found = {tuple(point[axis] for axis in axes) for point in kept}
        assert found == {tuple(point[axis] for axis in axes) for point in points}


def test_of_points_that_are_not_a_product_none_is_asked_for_that_is_not_there() -> None:
    points = [{"a": 0, "b": 0}, {"a": 1, "b": 1}]
    assert covering(points, 2) == [0, 1]
    assert covering(points[1:], 2) == [0]


def test_values_occur_equally_often() -> None:
    points = _points(6, 2)
    kept = [points[number]["b"] for number in covering(points, 1)]
    assert sorted(kept) == [0] * 3 + [1] * 3


@pytest.mark.pairs
@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("second", range(3))
@pytest.mark.parametrize("first", range(3))
def test_marked_pairs(request: pytest.FixtureRequest, first: int, second: int, third: int) -> None:
    """Checks that only as many of the 27 combinations run as pairs need."""
    ours = [item for item in request.session.items if item.name.startswith("test_marked_pairs[")]
    wanted = 27 if request.config.getoption("--all-combinations") else 12
    assert len(ours) <= wanted, (first, second, third)


@pytest.mark.values
@pytest.mark.parametrize("second", range(3))
@pytest.mark.parametrize("first", range(4))
def test_marked_values(request: pytest.FixtureRequest, first: int, second: int) -> None:
    """Checks that only as many of the 12 combinations run as values need."""
    ours = [item for item in request.session.items if item.name.startswith("test_marked_values[")]
    wanted = 12 if request.config.getoption("--all-combinations") else 4
    assert len(ours) <= wanted, (first, second)
