"""Number of repetitions of a measurement."""

from __future__ import annotations

import pytest

from byoc_mlir.backends.dnnl.library.timing import shortest_run


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([9e-4, 3e-4, 2e-4, 3e-4, 1e-4, 3e-4], 1e-4),  # the first one warms up
        ([9e-3, 5e-3], 5e-3),  # long enough to tell
    ],
)
def test_short_runs_are_repeated(runs: list[float], expected: float) -> None:
    now, left = 0.0, list(runs)

    def execute() -> None:
        nonlocal now
        now += left.pop(0)

    assert shortest_run(execute, lambda: now) == pytest.approx(expected)
    assert not left
