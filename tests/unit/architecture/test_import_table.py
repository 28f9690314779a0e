"""Imports of the package: exactly those of the table in docs/dev-notes/architecture.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from package_imports import imports

pytestmark = pytest.mark.xdist_group("package_imports")  # all of it is parsed once

_PAGE = Path(__file__).parents[3] / "docs" / "dev-notes" / "architecture.md"
_HEAD = "| folder or file | what it holds | imports |\n| --- | --- | --- |\n"


def _table() -> Mapping[str, frozenset[str]]:
    """Returns the allowed imports of each folder or file in the page's table."""
    rows = _PAGE.read_text().split(_HEAD)[1].split("\n\n")[0].splitlines()
    cells = [row.split("|") for row in rows]
    return {
        name: frozenset(re.findall("`(.+?)`", allowed))
        for _, names, _, allowed, _ in cells
        for name in re.findall("`(.+?)`", names)
    }


def _layer_of_row(row: str) -> str:
    return row.partition("/")[0].removesuffix(".py")


TABLE = _table()
LAYERS = frozenset(map(_layer_of_row, TABLE))
BASE = (
    *("abi", "boundary", "comparison", "dims", "errors", "extras", "files", "installed"),
    *("ir_dump", "disabled", "limits", "names", "locks", "progress", "calibration"),
    *("tensors", "warned"),
)
"""Modules of the table's first twelve rows, which all others may import."""

BY_NAME = {"__init__.py", "tools/"}
"""Files and folders that import modules by names that are data."""


def _row(file: str) -> str:
    first, *deeper = file.split("/")
    if first == "backends" and len(deeper) > 1:
        return "backends/*/"
    return f"{first}/" if deeper else first


def _layer(module: str) -> str:
    """Returns the layer of an imported name; `byoc_mlir.compile` is from the package itself."""
    layer = module.partition(".")[0]
    return layer if layer in LAYERS else "__init__"


def _allowed(row: str) -> frozenset[str]:
    layer = _layer_of_row(row)
    return TABLE[row].union([layer], () if layer in BASE else BASE)


@pytest.mark.parametrize("row", TABLE)
def test_a_row_imports_what_the_table_says(row: str) -> None:
    others = [
        f"{file} imports {module}"
        for file, modules in imports().items()
        for module in modules
        if _row(file) == row and _layer(module) not in _allowed(row)
    ]
    assert not others


@pytest.mark.parametrize("row", sorted(TABLE.keys() - BY_NAME))
def test_the_table_says_no_more(row: str) -> None:
    modules = [module for file in imports() if _row(file) == row for module in imports()[file]]
    assert TABLE[row] <= set(map(_layer, modules))


def test_every_file_is_in_the_table() -> None:
    assert {_row(file) for file in imports()} == TABLE.keys()


def test_layers_do_not_import_each_other() -> None:
    needs: dict[str, set[str]] = {layer: set() for layer in LAYERS}
    for row in TABLE:
        needs[_layer_of_row(row)] |= _allowed(row) - {_layer_of_row(row)}
    while needs:
        lowest = [layer for layer, below in needs.items() if not below & needs.keys()]
        assert lowest, f"these import each other: {sorted(needs)}"
        for layer in lowest:
            del needs[layer]
