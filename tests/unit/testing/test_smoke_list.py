"""The smoke selection and the page for contributors name files that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_smoke_selection_names_tests() -> None:
    for line in (ROOT / "tests" / "smoke.txt").read_text().split():
        path, _, function = line.partition("::")
        assert (ROOT / path).exists(), line
        assert not function or f"def {function}(" in (ROOT / path).read_text(), line


def test_the_walks_name_files() -> None:
    text = (ROOT / "docs" / "dev-notes" / "contributing.md").read_text()
    named = re.findall(r"^\| (?:tests: )?`([^`]+\.\w+)`", text, re.MULTILINE)
    assert len(named) > 12
    for path in (path for path in named if "<" not in path):
        assert (ROOT / path).is_file() or (ROOT / "byoc_mlir" / path).is_file(), path
