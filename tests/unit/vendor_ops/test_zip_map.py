"""Maps as outputs: a classifier and its ZipMap, as converters of classical models write them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from nodes import node_model, rows
from onnx import helper

import byoc_mlir
from byoc_mlir.errors import UnsupportedModelError
from byoc_mlir.testing.reference import run_onnxruntime
from byoc_mlir.testing.samples.onnx_nodes.trees import forest, listed


def with_maps(keys: list[int] | list[str], rows_of: str | int = 5) -> onnx.ModelProto:
    """Returns a classifier whose scores are one map a row."""
    trees = forest(Random(5), targets=(0, 1, 2), dense=True, positive=True)
    model = node_model(
        "TreeEnsembleClassifier",
        {"x": rows(6, 5)},
        {"label": np.int64, "scores": np.float32},
        domain="ai.onnx.ml",
        classlabels_int64s=[3, 5, 9],
        **listed(trees, "class"),
    )
    graph = model.graph
    kind = "strings" if isinstance(keys[0], str) else "int64s"
    attributes: dict[str, Any] = {f"classlabels_{kind}": keys}
    graph.node.append(
        helper.make_node("ZipMap", ["scores"], ["maps"], "zip", domain="ai.onnx.ml", **attributes)
    )
    key_type = onnx.TensorProto.STRING if kind == "strings" else onnx.TensorProto.INT64
    number = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key_type, number))
    del graph.output[1]
    graph.output.append(helper.make_value_info("maps", maps))
    dimension = graph.input[0].type.tensor_type.shape.dim[0]
    if isinstance(rows_of, str):
        dimension.dim_param = rows_of
    return model


@pytest.mark.values
@pytest.mark.parametrize("rows_of", [5, "n"])
@pytest.mark.parametrize("keys", [[3, 5, 9], ["a", "b", "c"]])
def test_maps(keys: list[int] | list[str], rows_of: str | int) -> None:
    model, data = with_maps(keys, rows_of), {"x": rows(6, 5)}
    with byoc_mlir.compile(model, targets=()) as executable:
        got = executable.run(data)
    want = run_onnxruntime(model, data)
    assert np.array_equal(got["label"], want["label"])
    assert [list(row) for row in got["maps"]] == [keys] * 5
    for found, expected in zip(got["maps"], want["maps"], strict=True):
        assert found == pytest.approx(expected, rel=1e-6)


def test_keys_that_are_too_few() -> None:
    with pytest.raises(byoc_mlir.errors.InvalidModelError, match=r"'zip' .* 2 labels"):
        byoc_mlir.compile(with_maps([3, 5]), targets=())


def test_maps_of_another_op_are_refused() -> None:
    model = with_maps([3, 5, 9])
    output = model.graph.node[1].output[0]
    model.graph.node[1].output[0] = "of_zip_map"
    model.graph.node.append(helper.make_node("Identity", ["of_zip_map"], [output]))
    with pytest.raises(UnsupportedModelError, match="must come from ZipMap"):
        byoc_mlir.compile(model, targets=())
