"""Fixed campaigns of every kind: as many cases as fit in the time, none of which fails."""

from __future__ import annotations

from itertools import islice

import pytest
from byoc_mlir_fuzz.campaign import Campaign
from byoc_mlir_fuzz.case import Settings
from byoc_mlir_fuzz.cases import Plan
from byoc_mlir_fuzz.report import summary

SEED = 2226

HOST, DNNL = Settings(targets=()), Settings(targets=("dnnl",))


@pytest.mark.parametrize(
    ("settings", "plan", "cases", "seconds"),
    [
        pytest.param(HOST, Plan(SEED), 15, 15.0, id="host"),
        pytest.param(DNNL, Plan(SEED + 1), 10, 15.0, id="dnnl"),
        pytest.param(HOST, Plan(SEED + 2, symbolic=True), 6, 15.0, id="symbolic"),
        pytest.param(HOST, Plan(SEED + 3, mutate=True), 25, 15.0, id="mutated"),
    ],
)
def test_nothing_is_found(settings: Settings, plan: Plan, cases: int, seconds: float) -> None:
    tally = Campaign(settings).run(islice(plan.cases(), cases), seconds)
    assert tally.kinds
    assert not tally.failures(), summary(tally, plan.mutate)
