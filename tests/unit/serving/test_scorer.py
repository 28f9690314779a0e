"""Scoring of batches of rows; rows that do not fit the model are reported separately."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from served_models import Doubling, affine_model

from byoc_mlir.errors import ExecutionError, InvalidInputError, InvalidModelError, MissingExtraError
from byoc_mlir.ray import Scorer, ShippedModel, ship

HOST = {"targets": ()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "affine.onnx"
    file.write_bytes(affine_model())
    return file


def _objects(*values: Any) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _scored(path: Path, batch: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    return Scorer(path, options=HOST, **arguments)(batch)


def test_rows_are_scored_and_other_columns_stay(path: Path) -> None:
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    scored = _scored(path, {"id": np.arange(5), "x": x})
    assert list(scored) == ["id", "y", "error"]
    np.testing.assert_array_equal(scored["y"], 2 * x + 1)
    assert scored["error"].tolist() == [""] * 5


def test_rows_that_do_not_fit_say_why_and_hurt_no_other(path: Path) -> None:
    values = [[1, 2], [1, 2, 3], None, ["a", "b"], [[1], [2, 3]], [3, 4]]
    scored = _scored(path, {"x": _objects(*values)})
    np.testing.assert_array_equal(scored["y"][[0, 5]], [[3, 5], [7, 9]])
    assert np.isnan(scored["y"][1:5]).all()
    errors = scored["error"].tolist()
    assert [bool(error) for error in errors] == [False, True, True, True, True, False]
    assert "shape [2], found [3]" in errors[1]
    assert "no value" in errors[2]


def test_a_batch_without_one_good_row(path: Path) -> None:
    scored = _scored(path, {"x": np.ones((3, 5), np.float32)})
    assert scored["y"].shape == (3, 2)
    assert scored["y"].dtype == np.float32
    assert all(scored["error"])


@pytest.mark.parametrize("rows", [1, 4])
def test_a_model_of_fixed_rows_is_filled_up(tmp_path: Path, rows: int) -> None:
    file = tmp_path / "fixed.onnx"
    file.write_bytes(affine_model(rows))
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    scored = _scored(file, {"x": x})
    np.testing.assert_array_equal(scored["y"], 2 * x + 1)


def test_what_prepare_raises_is_the_error_of_its_row(path: Path) -> None:
    def halves(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"x": np.array([1, 2], np.float32) / int(row["text"])}

    batch = {"text": _objects("2", "none", "4")}
    scored = _scored(path, batch, prepare=halves)
    np.testing.assert_array_equal(scored["y"][[0, 2]], [[2, 3], [1.5, 2]])
    assert scored["error"][1].startswith("prepare raised ValueError")
    assert list(scored) == ["text", "y", "error"]


def test_columns_may_have_other_names(path: Path) -> None:
    batch = {"pixels": np.ones((2, 2), np.uint8), "y": np.zeros(2), "id": np.arange(2)}
    scored = _scored(path, batch, columns={"x": "pixels"}, keep=["id"])
    np.testing.assert_array_equal(scored["y"], np.full((2, 2), 3))
    with pytest.raises(InvalidInputError, match="there is no column x"):
        _scored(path, {"id": np.arange(2)})


@pytest.mark.parametrize(
    ("column", "refused"),
    [
        (np.array([1, 2]), [False, False]),
        (np.array([1.0, np.nan]), [False, True]),
        (np.array([1.5, 2]), [True, False]),
        (np.array([1, 1 << 40]), [False, True]),
    ],
)
def test_numbers_that_the_type_cannot_hold_are_refused(
    tmp_path: Path, column: np.ndarray[Any, Any], refused: list[bool]
) -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.INT32, ["n"]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negated", [x], [y])
    file = tmp_path / "negated.onnx"
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    file.write_bytes(model.SerializeToString())
    scored = _scored(file, {"x": column})
    assert [bool(error) for error in scored["error"]] == refused
    good = ~np.array(refused)
    np.testing.assert_array_equal(scored["y"][good], -column[good])


def test_what_is_wrong_with_the_model_is_no_fault_of_the_rows(path: Path) -> None:
    class Broken(Doubling):
        def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
            raise ExecutionError("out of order")

    scorer = Scorer(path, options=HOST)
    scorer._model = Broken()
    with pytest.raises(ExecutionError):
        scorer({"x": np.ones((2, 2), np.float32)})


class _Store:
    """Mock of Ray's object store."""

    def __init__(self) -> None:
        self.fetched = 0

    def put(self, content: bytes) -> tuple[bytes]:
        return (content,)

    def get(self, reference: tuple[bytes]) -> bytes:
        self.fetched += 1
        return reference[0]


def test_a_node_gets_a_model_once(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, node = _Store(), tmp_path / "node"
    monkeypatch.setattr("byoc_mlir.ray.shipping.import_extra", lambda module, extra: store)
    node.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(node))
    shipped = ship(path)
    assert isinstance(shipped, ShippedModel)
    for _ in range(3):
        scored = Scorer(shipped, options=HOST)({"x": np.ones((1, 2), np.float32)})
        assert scored["y"].tolist() == [[3, 3]]
    assert store.fetched == 1
    with pytest.raises(InvalidModelError):
        ship(tmp_path / "none.onnx")


def test_without_ray_it_is_said_what_to_install(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'byoc_mlir\[ray\]'"):
        ship(path)
