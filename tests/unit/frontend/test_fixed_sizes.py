"""Symbolic dimensions whose sizes the caller of `compile` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.models import model_of, node
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

import byoc_mlir
from byoc_mlir.errors import ByocError, InvalidInputError, InvalidModelError


def model() -> ModelProto:
    """Returns a matmul; the second dimension of `w` and of the result has no name."""
    inputs = {"x": ["rows", "columns"], "w": ["columns", None]}
    return model_of([node("MatMul", "x w")], inputs, outputs={"y": ["rows", None]})


def shapes(executable: byoc_mlir.Executable) -> list[tuple[int | str, ...]]:
    return [info.shape for info in executable.inputs]


def test_sizes_that_are_known_are_fixed() -> None:
    given = model()
    with byoc_mlir.compile(given, targets=(), sizes={"columns": 3, "w[1]": 2}) as executable:
        assert shapes(executable) == [("rows", 3), (3, 2)]
        x, w = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
        assert executable.run({"x": x, "w": w})["y"].tolist() == [[3, 3]] * 4
        with pytest.raises(InvalidInputError, match="input 'w' must have shape"):
            executable.run({"x": x, "w": np.ones((3, 5), np.float32)})
    assert given == model()


def test_a_model_all_of_whose_sizes_are_known_is_compiled_at_once() -> None:
    sizes = {"rows": 4, "columns": 3, "w[1]": 2}
    with byoc_mlir.compile(model(), targets=(), sizes=sizes) as executable:
        assert shapes(executable) == [(4, 3), (3, 2)]
        assert executable.program.outputs[0].shape == (4, 2)


def test_sizes_of_no_dimension_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"dimension depth; the model's are columns, rows"):
        byoc_mlir.compile(model(), sizes={"depth": 1})


@pytest.mark.parametrize("sizes", [{"rows": -1}, {"rows": "4"}, {1: 1}, ["rows"]])
def test_what_sizes_may_be(sizes: Any) -> None:
    with pytest.raises(ByocError, match="accepted is a dictionary from names of dimensions"):
        byoc_mlir.compile(model(), sizes=sizes)


def test_a_module_has_its_sizes() -> None:
    with pytest.raises(InvalidModelError, match="sizes are for models of ONNX"):
        byoc_mlir.compile(ModuleOp([]), sizes={"rows": 1})
