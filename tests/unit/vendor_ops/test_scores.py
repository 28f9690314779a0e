"""Scores of classical models in forms for which ONNX is vague: one score for two classes, base
values, thresholds in f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nodes import node_model
from onnx import ModelProto, helper

import byoc_mlir
from byoc_mlir.errors import UnsupportedModelError
from byoc_mlir.testing.reference import run_onnxruntime

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 3)).astype(np.float32)
ONE_SCORE = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def _model(op_type: str, x: Any, outputs: dict[str, Any], **attributes: Any) -> ModelProto:
    return node_model(op_type, {"x": x}, outputs, domain="ai.onnx.ml", **attributes)


def _agrees(model: ModelProto, x: Any) -> None:
    found = byoc_mlir.compile(model, (), fallback="allow").run({"x": x})
    for name, wanted in run_onnxruntime(model, {"x": x}).items():
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=2e-5, strict=True)
        else:
            assert found[name].tolist() == wanted.tolist()


CLASSES: dict[str, Any] = {"label": np.int64, "scores": np.float32}


@pytest.mark.parametrize("transform", ONE_SCORE)
def test_one_score_of_a_linear_classifier(transform: str) -> None:
    attributes = {
        "coefficients": [0.5, -1.0, 0.25],
        "intercepts": [0.1],
        "post_transform": transform,
    }
    _agrees(_model("LinearClassifier", X, CLASSES, classlabels_ints=[4, 7], **attributes), X)


@pytest.mark.parametrize("transform", ONE_SCORE)
def test_one_score_of_a_support_vector_machine(transform: str) -> None:
    attributes = {
        "coefficients": [0.5, -1.0, 0.25],
        "kernel_params": [0.5, 0.3, 2.0],
        "rho": [0.1],
        "support_vectors": np.linspace(-1, 1, 9).tolist(),
        "vectors_per_class": [2, 1],
        "post_transform": transform,
    }
    _agrees(_model("SVMClassifier", X, CLASSES, classlabels_ints=[4, 7], **attributes), X)


def test_one_score_has_no_probit() -> None:
    attributes = {
        "coefficients": [0.5, -1.0, 0.25],
        "intercepts": [0.1],
        "post_transform": "PROBIT",
    }
    model = _model("LinearClassifier", X, CLASSES, classlabels_ints=[4, 7], **attributes)
    with pytest.raises(UnsupportedModelError, match=r"'PROBIT' of one score.*accepted are NONE"):
        byoc_mlir.compile(model, ())


@pytest.mark.parametrize("transform", [*ONE_SCORE, "PROBIT"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vector_regressions_are_not_transformed(transform: str, one_class: int) -> None:
    attributes = {
        "coefficients": [0.5, -1.0, 0.25],
        "kernel_params": [0.5, 0.3, 2.0],
        "kernel_type": "RBF",
        "n_supports": 3,
        "rho": [0.1],
        "support_vectors": np.linspace(-1, 1, 9).tolist(),
    }
    more = {"post_transform": transform, "one_class": one_class}
    _agrees(_model("SVMRegressor", X, {"y": np.float32}, **attributes, **more), X)


def _stump(prefix: str, ids: int, values: list[float], **more: Any) -> dict[str, Any]:
    """Returns the attributes of one tree with one comparison with 0.5."""
    return {
        "nodes_treeids": [0] * 3,
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0] * 3,
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        f"{prefix}_treeids": [0, 0],
        f"{prefix}_nodeids": [1, 2],
        f"{prefix}_ids": [ids] * 2,
        f"{prefix}_weights": values,
        **({} if "nodes_values_as_tensor" in more else {"nodes_values": [0.5, 0, 0]}),
        **more,
    }


ROWS = np.array([[0.0], [1.0], [np.nan]], np.float32)


@pytest.mark.pairs
@pytest.mark.parametrize("transform", ONE_SCORE)
@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.25, 0.75]])
@pytest.mark.parametrize(("own", "base"), [(0, []), (0, [0.25]), (1, []), (1, [0.25])])
def test_trees_of_one_class(
    transform: str, weights: list[float], own: int, base: list[float]
) -> None:
    more = {"base_values": base} if base else {}
    attributes = _stump("class", own, weights, post_transform=transform, **more)
    model = _model("TreeEnsembleClassifier", ROWS, CLASSES, classlabels_int64s=[4, 7], **attributes)
    _agrees(model, ROWS)


@pytest.mark.parametrize("own", [0, 1])
def test_each_class_has_its_base_value(own: int) -> None:
    attributes = _stump("class", own, [-1.0, 2.0], base_values=[0.5, 0.25])
    model = _model("TreeEnsembleClassifier", ROWS, CLASSES, classlabels_int64s=[4, 7], **attributes)
    found = byoc_mlir.compile(model, ()).run({"x": ROWS})
    wanted = np.array([[0.5, 0.25]] * 3, np.float32)
    wanted[:, own] += [-1, 2, 2]
    np.testing.assert_array_equal(found["scores"], wanted)
    assert found["label"].tolist() == np.where(wanted[:, own] > 0, 7, 4).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_in_double_precision(dtype: type[np.floating[Any]]) -> None:
    values = helper.make_tensor(
        "v", helper.np_dtype_to_tensor_dtype(np.dtype("f8")), [3], [0.1, 0, 0]
    )
    attributes = _stump("target", 0, [1.0, 2.0], nodes_values_as_tensor=values)
    x = np.array([[np.nextafter(0.1, 0)], [0.1], [np.nextafter(0.1, 1)]]).astype(dtype)
    model = _model("TreeEnsembleRegressor", x, {"y": np.float32}, **attributes)
    found = byoc_mlir.compile(model, ()).run({"x": x})["y"].reshape(-1)
    assert found.tolist() == np.where(x.reshape(-1).astype(np.float64) <= 0.1, 1, 2).tolist()
