"""Rules of TVM's partitioning: each has a test with its number, or a line on the difference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RULES = {"MC": 10, "AT": 13, "AR": 4, "MR": 8, "PG": 15, "CF": 4, "PL": 13}
NO_COUNTERPART = {"AT-8", "AR-3", "AR-4", "PG-7", "PG-12", "CF-1", "CF-2", "CF-3", "PL-6", "PL-13"}
"""Rules on expressions or data structures that do not exist here, each with a line."""

DEFECTS = {"MC-8", "MR-7", "MR-8", "PG-11", "PL-12"}
"""Rules that TVM gets wrong."""


def named_in(*paths: Path) -> set[str]:
    text = "\n".join(path.read_text() for path in paths)
    return set(re.findall(r"\b(?:MC|AT|AR|MR|PG|CF|PL)-\d+\b", text))


@pytest.fixture(scope="module")
def tested() -> set[str]:
    return named_in(*(ROOT / "tests" / "filecheck").rglob("*.mlir"))


@pytest.fixture(scope="module")
def explained() -> set[str]:
    return named_in(ROOT / "docs" / "dev-notes" / "partitioning.md")


@pytest.mark.parametrize("kind", RULES)
def test_rules(kind: str, tested: set[str], explained: set[str]):
    rules = {f"{kind}-{number}" for number in range(1, RULES[kind] + 1)}
    assert rules - tested <= NO_COUNTERPART
    assert rules - tested <= explained


def test_defects_are_tested_and_explained(tested: set[str], explained: set[str]):
    assert tested >= DEFECTS
    assert explained >= DEFECTS
