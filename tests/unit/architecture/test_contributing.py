"""`docs/dev-notes/contributing.md` names the files that a contribution takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from package_imports import PACKAGE

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/dev-notes/contributing.md").read_text()
COUNTS = {"two": 2, "three": 3, "five": 5}
WALKS = re.findall(r"^## (.+): (\w+) files$", PAGE, re.MULTILINE)


def _rows(walk: str) -> list[str]:
    """Returns the first cells of a walk's table, without its header."""
    section = PAGE.split(f"\n## {walk}: ")[1].split("\n## ")[0]
    return re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[2:]


def _package_files(walk: str) -> list[str]:
    """Returns the rows for files of the package."""
    return [row for row in _rows(walk) if not row.startswith(("tests: ", "docs: "))]


@pytest.mark.parametrize(("walk", "count"), WALKS)
def test_a_heading_counts_the_files_of_the_package(walk: str, count: str) -> None:
    assert len(_package_files(walk)) == COUNTS[count]


@pytest.mark.parametrize("walk", [walk for walk, _ in WALKS])
def test_the_files_exist(walk: str) -> None:
    named = [(row, path) for row in _rows(walk) for path in re.findall(r"`([^`<]+)`", row)]
    assert [
        path
        for row, path in named
        if not ((ROOT if row.startswith("tests: ") else PACKAGE) / path).is_file()
    ] == []


def test_five_files_name_an_element_wise_op() -> None:
    """Checks an op of every kind of table, which has no pattern of a backend."""
    names = re.compile(r'\bAsinhOp = |\brelay\.AsinhOp\b|"[aA]sinh"')
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if names.search(path.read_text())
    }
    samples = {path for path in found if path.startswith("testing/")}
    assert {f"`{path}`" for path in found - samples} == set(_package_files("An element-wise op"))
