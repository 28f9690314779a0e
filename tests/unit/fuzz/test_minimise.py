"""Minimisation of cases: its number of steps is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from byoc_mlir_fuzz.case import Array, Case
from byoc_mlir_fuzz.minimise import minimised
from helpers.models import parsed

MOST = 50
"""Limit of candidates, more than a model of one node has."""


def _case() -> Case:
    model = parsed("(float[3] x) => (float[3] y)", "y = Relu (x)")
    return Case("relu", model.SerializeToString(), ({"x": np.arange(3, dtype=np.float32)},))


@pytest.mark.parametrize("without", [None, 0.0], ids=["anything fails", "zeros pass"])
def test_numbers_become_plain_and_stay_so(without: float | None) -> None:
    asked: list[Array] = []

    def fails(candidate: Case) -> bool:
        asked.append(candidate.feeds[0]["x"])
        assert len(asked) < MOST
        return not (asked[-1] == without).all()

    small = minimised(_case(), fails, seconds=60.0)
    assert (small.feeds[0]["x"] == (0.0 if without is None else 1.0)).all()
