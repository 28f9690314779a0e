"""Linear models, support vectors, encoders of labels, and maps as outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from byoc_mlir.testing.samples.onnx_nodes.choices import finite, maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import ML, RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype, is_float

WORDS = ("a", "b", "cat", "dog", "", "\u00fcber", "x y")
_STRING = np.dtype(object)
_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


def features(graph: RandomGraph, op_type: str, *, floats: bool = False) -> Tensor:
    """Returns rows of features, of a float type that the op accepts or of any of its types."""
    shape = (graph.rng.randint(1, 9), graph.rng.randint(1, 6))
    accepted = graph.dtypes(op_type, 0, ML)
    kinds = [dtype for dtype in accepted if is_float(dtype)] if floats else accepted
    return graph.tensor(kinds, shape, style=finite(graph))


def numbers(graph: RandomGraph, count: int) -> list[float]:
    """Returns random multiples of 1/8, which f32 represents exactly."""
    return [graph.rng.randint(-16, 16) / 8 for _ in range(count)]


def labels(graph: RandomGraph, count: int, kind: str) -> tuple[dict[str, Any], Dtype]:
    """Returns the attribute with the labels of `count` classes, and the labels' type.

    Args:
        kind: suffix of the attribute for integers.
    """
    if graph.rng.random() < 0.3:
        return {"classlabels_strings": graph.rng.sample(WORDS, count)}, _STRING
    in_order = graph.rng.random() < 0.4
    chosen = list(range(count)) if in_order else graph.rng.sample(range(-5, 20), count)
    return {f"classlabels_{kind}": chosen}, _I64


@recipe("Imputer", domain=ML)
def imputer(graph: RandomGraph, op_type: str) -> None:
    x = features(graph, op_type)
    count = graph.rng.choice([1, x.sizes[1]])
    replaced = graph.rng.randint(-1, 1)
    attributes: dict[str, Any] = (
        {"imputed_value_floats": numbers(graph, count), "replaced_value_float": float(replaced)}
        if is_float(x.dtype)
        else {
            "imputed_value_int64s": _entries(graph, "int64", count),
            "replaced_value_int64": replaced,
        }
    )
    graph.emit(op_type, [x], 1, ML, types=[(x.dtype, x.shape)], **attributes)


@recipe("LinearRegressor", domain=ML)
def linear_regressor(graph: RandomGraph, op_type: str) -> None:
    x = features(graph, op_type, floats=True)
    targets = graph.rng.randint(1, 3)
    graph.emit(
        op_type,
        [x],
        domain=ML,
        types=[(_F32, (x.sizes[0], targets))],
        coefficients=numbers(graph, targets * x.sizes[1]),
        intercepts=maybe(graph, numbers(graph, targets)),
        targets=targets,
        post_transform=maybe(graph, "NONE", 0.3),
    )


@recipe("LinearClassifier", domain=ML)
def linear_classifier(graph: RandomGraph, op_type: str) -> None:
    rng, x = graph.rng, features(graph, op_type)
    classes = rng.randint(2, 4)
    rows = 1 if classes == 2 and rng.random() < 0.4 else classes
    accepted = ["NONE", "LOGISTIC"] if rows == 1 else ["NONE", "LOGISTIC", "SOFTMAX"]
    given, kind = labels(graph, classes, "ints")
    graph.emit(
        op_type,
        [x],
        2,
        ML,
        types=[(kind, (x.sizes[0],)), (_F32, (x.sizes[0], classes))],
        coefficients=numbers(graph, rows * x.sizes[1]),
        intercepts=numbers(graph, rows),
        multi_class=maybe(graph, rng.randint(0, 1)),
        post_transform=rng.choice(accepted),
        **given,
    )


def _kernel(graph: RandomGraph) -> dict[str, Any]:
    kind = graph.rng.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])
    # an odd power of a small base has one answer
    parameters = [graph.rng.choice([0.125, 0.25]), graph.rng.choice([0.0, 0.5]), 2.0]
    return {"kernel_type": kind, "kernel_params": parameters}


@recipe("SVMRegressor", domain=ML)
def svm_regressor(graph: RandomGraph, op_type: str) -> None:
    x = features(graph, op_type, floats=True)
    vectors = graph.rng.randint(1, 4)
    graph.emit(
        op_type,
        [x],
        domain=ML,
        types=[(_F32, (x.sizes[0], 1))],
        coefficients=numbers(graph, vectors),
        n_supports=vectors,
        one_class=maybe(graph, graph.rng.randint(0, 1)),
        rho=numbers(graph, 1),
        support_vectors=numbers(graph, vectors * x.sizes[1]),
        **_kernel(graph),
    )


@recipe("SVMClassifier", domain=ML)
def svm_classifier(graph: RandomGraph, op_type: str) -> None:
    rng, x = graph.rng, features(graph, op_type)
    classes = rng.randint(2, 4)
    sizes = [rng.randint(1, 3) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    shares: dict[str, Any] = {}
    if rng.random() < 0.5:
        shares = {"prob_a": numbers(graph, pairs), "prob_b": numbers(graph, pairs)}
    columns = pairs if pairs > 1 and not shares else classes
    given, kind = labels(graph, classes, "ints")
    graph.emit(
        op_type,
        [x],
        2,
        ML,
        types=[(kind, (x.sizes[0],)), (_F32, (x.sizes[0], columns))],
        coefficients=numbers(graph, (classes - 1) * sum(sizes)),
        rho=numbers(graph, pairs),
        support_vectors=numbers(graph, sum(sizes) * x.sizes[1]),
        vectors_per_class=sizes,
        post_transform=rng.choice(["NONE", "NONE", "LOGISTIC"]),
        **shares,
        **_kernel(graph),
        **given,
    )


_NAMES: dict[str, Dtype] = {"int64": _I64, "float": _F32, "string": _STRING}
"""Names of types in the attributes of an encoder."""


@recipe("LabelEncoder", domain=ML)
def label_encoder(graph: RandomGraph, op_type: str) -> None:
    rng, version = graph.rng, graph.opsets[ML]
    if version < 2:
        _first_label_encoder(graph, op_type)
        return
    key, value = rng.choice(list(_NAMES)), rng.choice(list(_NAMES))
    if version < 4 and key == value != "string":
        raise RejectedError("the second version has no such pair")
    count = rng.randint(1, 5)
    attributes: dict[str, Any] = {
        f"keys_{key}s": _entries(graph, key, count, distinct=True),
        f"values_{value}s": _entries(graph, value, count),
        f"default_{value}": maybe(graph, _entries(graph, value, 1)[0]),
    }
    x = _keys(graph, key)
    graph.emit(op_type, [x], 1, ML, types=[(_NAMES[value], x.shape)], **attributes)


def _first_label_encoder(graph: RandomGraph, op_type: str) -> None:
    key = graph.rng.choice(["int64", "string"])
    x = _keys(graph, key)
    words = graph.rng.sample(WORDS, graph.rng.randint(1, 5))
    kind = _STRING if key == "int64" else _I64
    graph.emit(op_type, [x], 1, ML, types=[(kind, x.shape)], classes_strings=words)


@recipe("CategoryMapper", domain=ML)
def category_mapper(graph: RandomGraph, op_type: str) -> None:
    rng, key = graph.rng, graph.rng.choice(["int64", "string"])
    count, x = rng.randint(1, 5), _keys(graph, key)
    graph.emit(
        op_type,
        [x],
        1,
        ML,
        types=[(_STRING if key == "int64" else _I64, x.shape)],
        cats_int64s=_entries(graph, "int64", count, distinct=True),
        cats_strings=rng.sample(WORDS, count),
        default_int64=maybe(graph, 7, 0.3),
        default_string=maybe(graph, "other", 0.3),
    )


def _entries(graph: RandomGraph, kind: str, count: int, distinct: bool = False) -> list[Any]:
    if kind == "string":
        return graph.rng.sample(WORDS, count)
    chosen = graph.rng.sample(range(-2, 5), count)
    if not distinct:
        chosen = [graph.rng.randint(-9, 9) for _ in range(count)]
    return [number / 2 for number in chosen] if kind == "float" else chosen


def _keys(graph: RandomGraph, kind: str) -> Tensor:
    """Returns values to look up, some of which are among the keys."""
    shape = tuple(graph.rng.randint(1, 5) for _ in range(graph.rng.randint(1, 3)))
    count = int(np.prod(shape))
    found = [_entries(graph, kind, 1)[0] for _ in range(count)]
    return graph.parameter(np.array(found, _NAMES[kind]).reshape(shape), as_input=1.0)


@recipe("ZipMap", domain=ML)
def zip_map(graph: RandomGraph, op_type: str) -> None:
    if graph.outer is not None:
        raise RejectedError("a subgraph gives no maps")
    scores = graph.tensor(_F32, least=2, most=2)
    classes = scores.sizes[1]
    if not 0 < classes <= len(WORDS) or not scores.sizes[0]:
        raise RejectedError(f"a map of {classes} keys")
    given, kind = labels(graph, classes, "int64s")
    key = TensorProto.STRING if kind == _STRING else TensorProto.INT64
    name = graph.emit_sequence(op_type, [scores], ML, **given)
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, number))
    graph.maps.append(helper.make_value_info(name, maps))
