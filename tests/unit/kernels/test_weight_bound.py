"""Algorithms of convolutions under a limit for their packed weights."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from byoc_mlir.kernels.weight_bound import Way, fastest_within

_WAYS = st.lists(
    st.builds(Way, st.sampled_from("abcd"), st.integers(1, 50), st.integers(1, 50)),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(st.lists(_WAYS, max_size=4), st.integers(0, 200))
def test_weights_fit_where_they_can(convolutions: list[list[Way]], most: int) -> None:
    smallest = sum(min(way.weight_bytes for way in ways) for ways in convolutions)
    taken = fastest_within(convolutions, most)
    assert all(way in ways for way, ways in zip(taken, convolutions, strict=True))
    assert sum(way.weight_bytes for way in taken) <= max(most, smallest)


@given(st.lists(_WAYS, max_size=4))
def test_the_fastest_are_taken_where_nothing_bounds(convolutions: list[list[Way]]) -> None:
    taken = fastest_within(convolutions, math.inf)
    fastest = [min(way.milliseconds for way in ways) for ways in convolutions]
    assert [way.milliseconds for way in taken] == fastest


@given(st.lists(_WAYS, max_size=4), st.integers(0, 200))
def test_no_faster_way_would_fit(convolutions: list[list[Way]], most: int) -> None:
    taken = fastest_within(convolutions, most)
    size = sum(way.weight_bytes for way in taken)
    for now, ways in zip(taken, convolutions, strict=True):
        for way in ways:
            if way.milliseconds < now.milliseconds:
                assert size - now.weight_bytes + way.weight_bytes > most


def test_what_loses_least_for_each_byte_goes_first() -> None:
    cheap = [Way("f6", 1.0, 7), Way("f4", 1.1, 4), Way("direct", 3.0, 1)]
    dear = [Way("f6", 1.0, 7), Way("f4", 2.0, 4), Way("direct", 9.0, 1)]
    taken = [
        [way.algorithm for way in fastest_within([cheap, dear], most)] for most in (14, 11, 8, 5)
    ]
    assert taken == [["f6", "f6"], ["f4", "f6"], ["f4", "f4"], ["direct", "f4"]]
    best = min(
        (sum(way.milliseconds for way in ways), [way.algorithm for way in ways])
        for ways in itertools.product(cheap, dear)
        if sum(way.weight_bytes for way in ways) <= 8
    )
    assert best[1] == taken[2]
