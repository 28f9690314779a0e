"""Linear models and ops on features, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nodes import check_node, node_model

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

ML = "ai.onnx.ml"
RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((6, 4)).astype(np.float32)
WHOLE = RNG.integers(-3, 4, (6, 4))


def numbers(count: int) -> list[float]:
    return RNG.standard_normal(count).astype(np.float32).tolist()


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets: int, post: str) -> None:
    check_node(
        "LinearRegressor",
        {"x": DATA},
        domain=ML,
        coefficients=numbers(4 * targets),
        intercepts=numbers(targets),
        targets=targets,
        post_transform=post,
    )


@pytest.mark.pairs
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(("classes", "labels"), [(1, [5, 7]), (2, [5, 7]), (3, [0, 1, 2])])
@pytest.mark.parametrize("data", [DATA, WHOLE])
def test_linear_classifier(
    data: np.ndarray[Any, Any], classes: int, labels: list[int], post: str
) -> None:
    if classes == 1 and post == "SOFTMAX":
        return
    check_node(
        "LinearClassifier",
        {"x": data},
        {"label": np.int64, "scores": np.float32},
        domain=ML,
        coefficients=numbers(4 * classes),
        intercepts=numbers(classes),
        classlabels_ints=labels,
        post_transform=post,
    )


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    check_node(
        "SVMRegressor",
        {"x": DATA},
        domain=ML,
        coefficients=numbers(5),
        kernel_params=[0.3, 0.5, 2.0],
        kernel_type=kernel,
        n_supports=5,
        one_class=one_class,
        rho=[0.2],
        support_vectors=numbers(20),
        tolerance=1e-5,
    )


def test_linear_svm_regressor() -> None:
    unused: dict[str, Any] = {"kernel_params": [0.0, 0.0, 0.0]}
    check_node("SVMRegressor", {"x": DATA}, domain=ML, coefficients=numbers(4), rho=[0.2], **unused)


@pytest.mark.parametrize("data", [DATA, WHOLE, DATA.astype(np.float64)])
def test_scaler(data: np.ndarray[Any, Any]) -> None:
    check_node("Scaler", {"x": data}, domain=ML, offset=numbers(4), scale=numbers(4))
    check_node("Scaler", {"x": data}, domain=ML, offset=[0.5], scale=[2.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    data = DATA.copy()
    data[2] = 0
    check_node("Normalizer", {"x": data}, domain=ML, norm=norm)
    check_node("Normalizer", {"x": WHOLE}, domain=ML, norm=norm)


@pytest.mark.parametrize("replaced", [float("nan"), 0.5])
@pytest.mark.parametrize("count", [1, 4])
def test_imputer(replaced: float, count: int) -> None:
    data = np.where(DATA > 0.3, np.float32(replaced), DATA)
    values = numbers(count)
    check_node(
        "Imputer",
        {"x": data},
        domain=ML,
        replaced_value_float=replaced,
        imputed_value_floats=values,
    )


def test_imputer_of_integers() -> None:
    check_node(
        "Imputer",
        {"x": WHOLE},
        {"y": np.int64},
        domain=ML,
        replaced_value_int64=2,
        imputed_value_int64s=[9, 8, 7, 6],
    )


def test_an_imputer_has_one_value_or_one_for_each_feature() -> None:
    """Checks the refusal; for other counts, which ONNX does not define, ONNX Runtime takes the
    first value.
    """
    values: dict[str, Any] = {"imputed_value_floats": numbers(2)}
    model = node_model("Imputer", {"x": DATA}, {"y": np.float32}, domain=ML, **values)
    reason = "imputed_value has 2 entries, accepted is one, or one for each feature, which are 4"
    with pytest.raises(InvalidModelError, match=rf"'n' \(Imputer\): {reason}"):
        byoc_mlir.compile(model, ())


def test_label_encoder() -> None:
    keys: dict[str, Any] = {"keys_int64s": [0, 2, -1]}
    check_node(
        "LabelEncoder",
        {"x": WHOLE},
        domain=ML,
        values_floats=[0.5, 1.5, 2.5],
        default_float=9.0,
        **keys,
    )
    check_node(
        "LabelEncoder",
        {"x": np.array([0.5, np.nan, 7.0], np.float32)},
        {"y": np.int64},
        domain=ML,
        keys_floats=[7.0, 0.5],
        values_int64s=[4, 6],
    )


def test_one_hot_encoder() -> None:
    check_node("OneHotEncoder", {"x": WHOLE[:, 0]}, domain=ML, cats_int64s=[0, 2, -1])


def test_feature_vectorizer() -> None:
    check_node(
        "FeatureVectorizer", {"a": DATA, "b": DATA[:, :2]}, domain=ML, inputdimensions=[4, 2]
    )


def test_array_feature_extractor_and_binarizer() -> None:
    check_node("ArrayFeatureExtractor", {"x": DATA, "i": np.array([2, 0], np.int64)}, domain=ML)
    check_node("Binarizer", {"x": DATA}, domain=ML, threshold=0.2)


def test_compiled_for_a_backend() -> None:
    attributes: dict[str, Any] = {"coefficients": numbers(12), "intercepts": numbers(3)}
    model = node_model(
        "LinearClassifier",
        {"x": DATA},
        {"label": np.int64, "scores": np.float32},
        domain=ML,
        classlabels_ints=[3, 5, 9],
        post_transform="SOFTMAX",
        **attributes,
    )
    with byoc_mlir.compile(model, ("dnnl",)) as executable:
        assert_agrees(executable.run({"x": DATA}), run_onnxruntime(model, {"x": DATA}), 1e-5)
