"""Choice of the steps that threads share, compared with all other choices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_mlir.backends.dnnl.passes.share_dnnl_threads import shared_steps
from byoc_mlir.kernels.costs import ASSUMED


def _milliseconds(steps: Sequence[float], shared: Sequence[bool], threads: int) -> float:
    total, idle = 0.0, float("inf")
    for alone, is_shared in zip(steps, shared, strict=True):
        if not is_shared:
            total, idle = total + alone, idle + alone
            continue
        wake = ASSUMED.thread_wake if idle > ASSUMED.threads_spin else 0.0
        total, idle = total + wake + ASSUMED.thread_start + alone / threads, 0.0
    return total


@given(st.lists(st.floats(0, 0.2), max_size=9), st.integers(2, 4))
def test_no_other_way_takes_less(steps: list[float], threads: int) -> None:
    found = _milliseconds(steps, shared_steps(steps, threads), threads)
    ways = product([False, True], repeat=len(steps))
    least = min(_milliseconds(steps, way, threads) for way in ways)
    assert found == pytest.approx(least)


def test_short_steps_keep_threads_awake() -> None:
    long, short = 10 * ASSUMED.thread_wake, ASSUMED.threads_spin / 4
    steps = [long, *[short] * 8, long]
    assert all(shared_steps(steps, 2))
    assert not any(shared_steps([short, short], 2))
