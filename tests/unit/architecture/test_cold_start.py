"""A first compilation imports and runs few files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from concepts import run_counts

pytestmark = pytest.mark.xdist_group("cold_start")  # one process counts for all

MOST: Mapping[str, int] = {
    "files that run": 41,  # 40 if no region stays on a backend
    "modules of byoc_mlir loaded": 445,
    "modules loaded": 930,  # with the example backends
}
"""Maximum counts for a perceptron in a fresh process with an empty cache, to be reduced."""


@pytest.fixture(scope="module")
def counts() -> Mapping[str, int]:
    return run_counts(Path(__file__).parents[3])


@pytest.mark.parametrize("what", MOST)
def test_a_perceptron_needs_few_files(counts: Mapping[str, int], what: str) -> None:
    assert counts[what] <= MOST[what]
