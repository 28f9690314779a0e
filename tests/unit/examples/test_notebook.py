"""The cells of docs/notebook.ipynb run in order, without Jupyter, and print what it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from byoc_mlir.testing.forked import run_forked

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebook.ipynb"

RUN_ALL = """
import os, sys
_, folder, *paths = sys.argv
os.chdir(folder)
names = {"__name__": "__main__"}
for path in paths:
    print(f"<{os.path.basename(path)}>")
    exec(compile(open(path).read(), path, "exec"), names)
"""


def _code_cells() -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_cells_run_in_order(tmp_path: Path) -> None:
    paths = [tmp_path / f"cell{number}.py" for number in range(len(_code_cells()))]
    for path, cell in zip(paths, _code_cells(), strict=True):
        path.write_text("".join(cell["source"]))
    printed = run_forked(RUN_ALL, str(tmp_path), *map(str, paths))
    found = [part.partition(">\n")[2] for part in printed.split("<cell")[1:]]
    for cell, text in zip(_code_cells(), found, strict=True):
        if "import_model" in "".join(cell["source"]):  # the others depend on the machine
            assert text == _output(cell)
        assert bool(text) == bool(_output(cell))


def test_all_cells_were_run_in_order() -> None:
    counts = [cell["execution_count"] for cell in _code_cells()]
    assert counts == list(range(1, 11))


def _output(cell: dict[str, Any]) -> str:
    return "".join(text for one in cell["outputs"] for text in one["text"])
