"""Random graphs with symbolic sizes: imported once and specialised, or imported for each shape."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from byoc_mlir_fuzz.cases import Plan

from byoc_mlir.compiler.symbolic import SymbolicModel
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.importer import import_loaded
from byoc_mlir.frontend.inputs import model_inputs

PLAN = Plan(32, symbolic=True)


def _imported(number: int) -> int:
    """Returns the number of a case's shapes that the symbolic import served, each equal to the
    static import.
    """
    case = PLAN.case(number)
    model, reader, served = load_model(case.model), TensorReader(None), 0
    if all(info.is_static for info in model_inputs(model)):
        return 0
    symbolic = SymbolicModel(model, reader)
    for feeds in case.feeds:
        shapes: Mapping[str, tuple[int, ...]] = {name: each.shape for name, each in feeds.items()}
        found = symbolic.at(shapes)
        if found is None:
            continue
        assert str(found.module) == str(import_loaded(model, reader, shapes).module)
        served += 1
    return served


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_imports_agree(first: int) -> None:
    assert sum(map(_imported, range(first, first + 30))) > 5
