"""Steps of a variant that a problem is responsible for, and comparison of variants."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from tuning_models import small_network

from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.search import Candidate, TimedStep
from byoc_mlir.kernels.tuned import USUAL, Question, Trial, trying

_CONVOLUTION, _TURNED = TimedStep(("conv", "relu"), "kernel", 0), TimedStep(("relu",), "turn", 0)

_QUESTIONS = {
    "algorithm": Question(("f4x3", "loops"), {"conv", "relu"}),
    "schedule": Question((USUAL, "constants"), {"conv", "relu"}),
    "turn": Question((USUAL, "blocked"), kernels={"turn"}),
}


def _variant(*runs: tuple[float, float]) -> Candidate:
    """Returns a variant with the times of the convolution and of the transposition after it, in
    each round.
    """
    variant = Candidate({}, cast(Any, None), _QUESTIONS)
    for number, times in enumerate(runs):
        variant.runs[number] = dict(zip((_CONVOLUTION, _TURNED), times, strict=True))
    return variant


@pytest.mark.parametrize(
    ("problem", "expected"), [("algorithm", 5.0), ("schedule", 3.0), ("turn", 2.0)]
)
def test_what_a_problem_answers_for(problem: str, expected: float) -> None:
    """Checks a transposition: the algorithm requires it, but it has its own schedule."""
    assert _variant((3, 2)).of_problem(problem) == expected


def test_variants_are_compared_round_by_round() -> None:
    """Checks a round in which everything took ten times as long, and one with only one of the
    variants.
    """
    one, other = _variant((2, 1), (20, 10)), _variant((4, 1), (40, 10), (0.1, 0.1))
    assert one.over(other) == pytest.approx(0.6)
    assert one.over(other, "schedule") == pytest.approx(0.5)
    assert one.over(other, "turn") == 1
    other.questions = {}
    assert other.over(one, "schedule") == math.inf
    assert _variant((1, 0)).over(_variant((1, 0)), "turn") == math.inf


def test_an_algorithm_answers_for_what_its_kernel_does_behind_it() -> None:
    trial = Trial({})
    request = Request(small_network().SerializeToString(), targets=(), fallback="allow")
    with trying(trial):
        compile_model(request).close()
    first = next(one for one in trial.questions.values() if "conv0" in one.nodes)
    assert first.nodes == {"conv0", "relu0"}
