"""The page of threats names tests that exist, and a test for each input."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "dev-notes" / "threats.md"
_NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")


def _file(name: str) -> Path:
    return ROOT / (name if name.startswith(("tests/", "fuzzer/")) else f"tests/unit/{name}")


def test_every_named_test_exists() -> None:
    found = _NAMED.findall(PAGE.read_text())
    assert len(found) > 40
    missing = list[str]()
    for name, function in found:
        if not _file(name).is_file():
            missing.append(name)
        elif function and function not in _functions(_file(name)):
            missing.append(f"{name}::{function}")
    assert missing == []


def _functions(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    return {one.name for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_row_has_a_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    titles = ("| input", "| fault", "| ---")
    without = [row for row in rows if not row.startswith(titles) and not _NAMED.search(row)]
    assert without == []
