"""Labels and categories that are strings."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from nodes import node_model, rows
from onnx import TensorProto, helper

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError
from byoc_mlir.testing.reference import run_onnxruntime
from byoc_mlir.testing.samples.onnx_nodes.trees import forest, listed

ML = "ai.onnx.ml"
WORDS = np.array(["b", "x", "a", "b"], object)
NUMBERS = np.array([20, 7, 10, 20])


@pytest.mark.parametrize("texts", [["no", "yes", "über"], ["no", "yes"]])
def test_classifier(texts: list[str]) -> None:
    targets = tuple(range(len(texts))) if len(texts) > 2 else (1,)
    trees = forest(Random(5), targets=targets, dense=True)
    data = {"x": rows(6, 40)}
    model = node_model(
        "TreeEnsembleClassifier",
        data,
        {"label": np.object_, "scores": np.float32},
        domain=ML,
        classlabels_strings=texts,
        **listed(trees, "class"),
    )
    del model.opset_import[0]  # a model of one op of that domain need not have another
    want = run_onnxruntime(model, data)
    with byoc_mlir.compile(model, targets=(), fallback="allow") as executable:
        got = executable.run(data)
    assert set(want["label"]) == set(texts)
    assert got["label"].tolist() == want["label"].tolist()
    np.testing.assert_allclose(got["scores"], want["scores"], rtol=1e-5, atol=1e-6)


CATEGORIES = {"cats_int64s": [10, 20, 30], "cats_strings": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("op_type", "data", "attributes", "want"),
    [
        ("CategoryMapper", WORDS, CATEGORIES, [20, -1, 10, 20]),
        ("CategoryMapper", WORDS, {**CATEGORIES, "default_int64": 5}, [20, 5, 10, 20]),
        ("CategoryMapper", NUMBERS, CATEGORIES, ["b", "_Unused", "a", "b"]),
        ("CategoryMapper", NUMBERS, {**CATEGORIES, "default_string": "?"}, ["b", "?", "a", "b"]),
        ("LabelEncoder", WORDS, {"classes_strings": ["a", "b"]}, [1, -1, 0, 1]),
        (
            "LabelEncoder",
            NUMBERS // 10 - 1,
            {"classes_strings": ["a", "b"]},
            ["b", "_Unused", "a", "b"],
        ),
    ],
)
def test_categories(
    op_type: str, data: np.ndarray[Any, Any], attributes: dict[str, Any], want: list[Any]
) -> None:
    kind = np.object_ if isinstance(want[0], str) else np.int64
    model = node_model(op_type, {"x": data}, {"y": kind}, domain=ML, **attributes)
    model.opset_import[-1].version = 1
    if op_type == "CategoryMapper":
        assert run_onnxruntime(model, {"x": data})["y"].tolist() == want
    with byoc_mlir.compile(model, targets=(), fallback="allow") as executable:
        assert executable.run({"x": data})["y"].tolist() == want


_LATIN = "über".encode("latin-1")
"""Text that is no UTF-8."""


def _with_text(of: dict[str, Any]) -> onnx.ModelProto:
    domain = "" if of["op_type"] == "StringNormalizer" else ML
    made = helper.make_node(of["op_type"], ["x"], of["outputs"], domain=domain, **of["attributes"])
    outputs = [helper.make_tensor_value_info(name, 0, None) for name in of["outputs"]]
    x = onnx.ValueInfoProto(name="x", type=of["type"])
    graph = helper.make_graph([made], "g", [x], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


_FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 2])
_STRINGS = helper.make_tensor_type_proto(TensorProto.STRING, [2])
_COLUMN = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
_NOT_UTF8 = {
    "labels": {
        "op_type": "LinearClassifier",
        "type": _FLOATS,
        "outputs": ["label", "scores"],
        "attributes": {"coefficients": [1.0, -1.0, 0.5, 1.0], "classlabels_strings": ["a", _LATIN]},
    },
    "maps": {
        "op_type": "ZipMap",
        "type": _FLOATS,
        "outputs": ["maps"],
        "attributes": {"classlabels_strings": ["a", _LATIN]},
    },
    "vocabulary": {
        "op_type": "DictVectorizer",
        "type": helper.make_map_type_proto(TensorProto.STRING, _COLUMN),
        "outputs": ["y"],
        "attributes": {"string_vocabulary": ["a", _LATIN]},
    },
    "form": {
        "op_type": "CastMap",
        "type": helper.make_map_type_proto(TensorProto.INT64, _COLUMN),
        "outputs": ["y"],
        "attributes": {"cast_to": "TO_FLOAT", "map_form": _LATIN},
    },
    "locale": {
        "op_type": "StringNormalizer",
        "type": _STRINGS,
        "outputs": ["y"],
        "attributes": {"locale": _LATIN, "case_change_action": "UPPER"},
    },
}
"""Nodes with such a text in an attribute, each of which is read in a place of its own."""


@pytest.mark.parametrize("of", _NOT_UTF8.values(), ids=_NOT_UTF8)
def test_a_text_that_is_not_utf8_is_taken_or_refused(of: dict[str, Any]) -> None:
    with suppress(UnsupportedModelError, InvalidModelError):
        byoc_mlir.compile(_with_text(of), targets=(), fallback="allow").close()
