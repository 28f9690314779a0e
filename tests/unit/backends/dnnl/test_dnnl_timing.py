"""Number of repetitions of a measurement."""

from __future__ import annotations

import math

import pytest

from byoc_mlir.backends.dnnl.library.timing import shortest_run


@pytest.mark.parametrize(
    ("runs", "rival", "expected"),
    [
        ([9e-4, 3e-4, 2e-4, 3e-4, 1e-4, 3e-4], math.inf, 1e-4),  # the first one warms up
        ([9e-3, 5e-3], math.inf, 5e-3),  # long enough to tell
        ([9e-3, 2e-3], 1e-3, 2e-3),  # far behind
        ([9e-3, 14e-4, 13e-4], 1e-3, 13e-4),  # not so far: once more
        ([9e-3, 1e-3, 1e-3, 1e-3, 1e-3], 1e-3, 1e-3),  # equal: as often as without a rival
        ([9e-4, 3e-4, 2e-4, 4e-4], 1e-4, 2e-4),  # one short run tells nothing
    ],
)
def test_what_is_slower_than_its_rival_runs_less_often(
    runs: list[float], rival: float, expected: float
) -> None:
    now, left = 0.0, list(runs)

    def execute() -> None:
        nonlocal now
        now += left.pop(0)

    assert shortest_run(execute, lambda: now, rival) == pytest.approx(expected)
    assert not left
