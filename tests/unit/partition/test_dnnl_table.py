"""Rows of oneDNN's pattern table: each is found.

Values inside of a match that escape are tested in
`tests/unit/patterns/test_hostile_surroundings.py`.
"""

from __future__ import annotations

import pytest
from dnnl_graphs import ANCHORS, build, composites
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import get_backend
from byoc_mlir.transforms.merge_composite import MergeComposite

ROWS = [row.name.removeprefix("dnnl.") for row in get_backend("dnnl").patterns()]


@pytest.mark.parametrize("anchored", ANCHORS)
def test_every_row_is_found(anchored: str):
    longer = [name for name in ANCHORS if name.startswith(f"{anchored}_")]
    mine = [
        row
        for row in ROWS
        if row.startswith(f"{anchored}_") and not any(row.startswith(name) for name in longer)
    ]
    assert len(mine) > 30
    functions = [build(row) for row in mine]
    module = ModuleOp(functions)
    module.verify()
    MergeComposite(("dnnl",)).apply(Context(), module)
    module.verify()
    found = {function.sym_name.data: composites(function) for function in functions}
    assert found == {row: [row] for row in mine}
