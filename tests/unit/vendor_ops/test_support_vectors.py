"""Support vector classifiers against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nodes import check_node, node_model, run_imported

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

ML = "ai.onnx.ml"
RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((9, 4)).astype(np.float32)
OUTPUTS = {"label": np.int64, "scores": np.float32}


def machine(classes: int, *, probabilities: bool, **more: Any) -> dict[str, Any]:
    """Returns the attributes of a classifier with two support vectors for each class and one
    more."""
    sizes = [2] * (classes - 1) + [3]
    count, pairs = sum(sizes), classes * (classes - 1) // 2

    def numbers(size: int) -> list[float]:
        return RNG.standard_normal(size).astype(np.float32).tolist()

    found: dict[str, Any] = {
        "classlabels_ints": [3, 5, 9, 11][:classes],
        "coefficients": numbers((classes - 1) * count),
        "kernel_params": [0.3, 0.1, 2.0],
        "kernel_type": "RBF",
        "rho": numbers(pairs),
        "support_vectors": numbers(4 * count),
        "vectors_per_class": sizes,
    }
    if probabilities:
        found |= {"prob_a": numbers(pairs), "prob_b": numbers(pairs)}
    return {**found, **more}


@pytest.mark.pairs
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_kernels(kernel: str, classes: int, probabilities: bool) -> None:
    attributes = machine(classes, probabilities=probabilities, kernel_type=kernel)
    check_node("SVMClassifier", {"x": DATA}, OUTPUTS, domain=ML, tolerance=2e-5, **attributes)


@pytest.mark.parametrize(
    ("classes", "probabilities", "post"),
    [(2, False, "LOGISTIC"), (2, True, "SOFTMAX"), (3, False, "LOGISTIC"), (3, False, "SOFTMAX")],
)
def test_transforms(classes: int, probabilities: bool, post: str) -> None:
    attributes = machine(classes, probabilities=probabilities, post_transform=post)
    check_node("SVMClassifier", {"x": DATA}, OUTPUTS, domain=ML, tolerance=2e-5, **attributes)


@pytest.mark.parametrize("labels", [[4, 7], [4, 7, 9]])
def test_without_support_vectors(labels: list[int]) -> None:
    """Checks the labels; with two, ONNX Runtime returns the second whenever a score is above 0."""
    attributes: dict[str, Any] = {
        "classlabels_ints": labels,
        "coefficients": RNG.standard_normal(4 * len(labels)).astype(np.float32).tolist(),
        "kernel_params": [0.0, 0.0, 0.0],
        "rho": [0.25],
    }
    model = node_model("SVMClassifier", {"x": DATA}, OUTPUTS, domain=ML, **attributes)
    scores = run_onnxruntime(model, {"x": DATA})["scores"]
    want = {"label": np.array(labels)[scores.argmax(1)], "scores": scores}
    assert_agrees(run_imported(model, {"x": DATA}), want, 2e-6)


def test_compiled() -> None:
    model = node_model(
        "SVMClassifier", {"x": DATA}, OUTPUTS, domain=ML, **machine(4, probabilities=True)
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.report().counts() == {"host": 1}
        want = run_onnxruntime(model, {"x": DATA})
        assert_agrees(executable.run({"x": DATA}), want, 2e-5)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"rho": [0.1]}, "1 rho and 14 coefficients, accepted are"),
        ({"kernel_type": "COSINE"}, "kernel_type is 'COSINE'"),
        ({"prob_a": [0.1]}, "1 prob_a and 0 prob_b, accepted are 3"),
        ({"vectors_per_class": [0]}, "there are 3 rho; accepted is one"),
    ],
)
def test_refusals(attributes: dict[str, Any], reason: str) -> None:
    given = machine(3, probabilities=False, **attributes)
    model = node_model("SVMClassifier", {"x": DATA}, OUTPUTS, domain=ML, **given)
    with pytest.raises(ByocError, match=reason):
        byoc_mlir.compile(model, targets=())
