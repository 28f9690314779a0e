"""ONNX's backend test suite: each op here, all cases by `python tools/onnx_suite.py`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx_suite import Expectations, Outcome, run_case, sampled_cases, suite_cases
from operators_page import operators_page

pytestmark = pytest.mark.xdist_group("onnx_cases")  # ONNX takes ten seconds to build them

EXPECTATIONS = Expectations.read(Path(__file__).parent / "expectations.toml")
SHARDS = 16


def test_the_whole_suite_is_collected() -> None:
    counts = Counter(case.kind for case in suite_cases())
    assert counts == {
        "node": 1884,
        "simple": 23,
        "pytorch-converted": 82,
        "pytorch-operator": 35,
    }
    assert counts.total() == 2024


def test_what_is_expected() -> None:
    names = {case.name for case in suite_cases()}
    failing = EXPECTATIONS.not_passing.keys() | EXPECTATIONS.random.keys()
    assert failing <= names
    assert len(failing) == len(EXPECTATIONS.not_passing) + len(EXPECTATIONS.random)
    assert EXPECTATIONS.through_net.keys() <= names - failing
    passing = len(names) - len(failing)
    assert passing >= 1900
    assert passing - len(EXPECTATIONS.through_net) >= 1900
    assert all(len(reason) > 10 for reason in EXPECTATIONS.not_passing.values())


def test_every_op_is_in_the_sample() -> None:
    sample = sampled_cases()
    assert len(sample) > 550
    written = [case for case in suite_cases() if "_expanded" not in case.name]
    ops = {op for case in written for op in case.ops()}
    assert ops <= {op for case in sample for op in case.ops()}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_cases(shard: int) -> None:
    """Checks that listed cases fail and all others pass, natively unless listed for the fallback
    interpreter.
    """
    sample = sampled_cases()
    with np.errstate(all="ignore"):
        news = [EXPECTATIONS.contradicted(case, run_case(case)) for case in sample[shard::SHARDS]]
    assert not any(news), "\n".join(filter(None, news))


def test_an_unlisted_failure_and_a_listed_pass_are_news() -> None:
    case = suite_cases()[0]
    listed = Expectations({case.name: "it is said to fail"}, {})
    unlisted = Expectations({}, {})
    failed, passed = Outcome("it failed", (), 0.0), Outcome("", (), 0.0)
    assert listed.contradicted(case, passed)
    assert unlisted.contradicted(case, failed)
    assert unlisted.contradicted(case, Outcome("", ("Det",), 0.0))
    assert not listed.contradicted(case, failed)
    assert not unlisted.contradicted(case, passed)


def test_a_random_case_runs_and_passes_by_chance() -> None:
    case = suite_cases()[0]
    drawn = Expectations({}, {}, {case.name: "its values are drawn"})
    assert not drawn.contradicted(case, Outcome("", (), 0.0))
    assert not drawn.contradicted(case, Outcome("AssertionError: other values", (), 0.0))
    assert drawn.contradicted(case, Outcome("ImportError_: no such op", (), 0.0))
    assert drawn.contradicted(case, Outcome("", ("Bernoulli",), 0.0))


def test_the_page_of_operators() -> None:
    page = operators_page()
    assert page.path == "operators.md"
    lines = page.text.splitlines()
    for line in (
        "## ai.onnx",
        "## ai.onnx.ml",
        "## com.microsoft",
        "| Abs | 1, 6, 13 | native | 13 of 13 |",
        "| RegexFullMatch | not 20 | net | 3 of 3 |",
    ):
        assert line in lines
    assert "| RegexFullMatch | 20 |" in lines
    assert all(line.count("|") in (0, 3, 5) for line in lines)
