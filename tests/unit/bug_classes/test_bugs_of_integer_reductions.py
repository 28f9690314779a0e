"""Reductions of integers: those through roots and logarithms, and those that overflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto
from small_models import Array, Arrays, check, floats, ints, node, onnxruntime

_IN_FLOAT: dict[str, Callable[[Array], Array]] = {
    "ReduceL2": lambda x: np.sqrt((x * x).sum(-1, keepdims=True)),
    "ReduceLogSum": lambda x: np.log(x.sum(-1, keepdims=True)),
    "ReduceLogSumExp": lambda x: np.log(np.exp(x).sum(-1, keepdims=True)),
}


def _in_float(model: ModelProto, feeds: Arrays) -> dict[str, Array]:
    x = feeds["x"]
    return {
        node.output[0]: _IN_FLOAT[node.op_type](x.astype(np.float64)).astype(x.dtype)
        for node in model.graph.node
    }


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("opset", [13, 20])
def test_roots_and_logarithms(dtype: type[np.integer], opset: int) -> None:
    x = np.array([[1, 2, 3], [40, 5, 60], [3, 4, 0], [2_000_000_000, 1, 7]], dtype)
    if opset == 13:
        nodes = [node(op, "x", axes=[-1]) for op in _IN_FLOAT]
        check(nodes, {"x": x[:3]}, oracle=_in_float, opset=opset)
    else:
        nodes = [node(op, "x axes") for op in ("ReduceL2", "ReduceLogSum")]
        check(nodes, {"x": x}, {"axes": ints(-1)}, oracle=_in_float, opset=opset)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_means_of_negative_numbers_are_cut_toward_zero(dtype: type[np.integer]) -> None:
    x = np.array([[-7, 2, 0], [7, 2, 1]], dtype)
    check([node("ReduceMean", "x axes")], {"x": x}, {"axes": ints(1)}, oracle=onnxruntime)


def test_logarithms_of_infinite_sums() -> None:
    x = floats(*(-np.inf, -np.inf, 1, np.inf, -np.inf, 2, np.nan, 1, 0)).reshape(3, 3)
    y = np.full((2, 2), -np.inf, np.float32)
    nodes = [node("ReduceLogSumExp", "x axes"), node("ReduceLogSumExp", "y axes", keepdims=0)]
    check(nodes, {"x": x, "y": y}, {"axes": ints(1)}, oracle=onnxruntime)


def test_booleans_that_are_scattered() -> None:
    """Checks that the sum of true and true is true: it is no addition of bits."""
    data, more = np.array([0, 0, 0, 1, 1, 1], bool), np.array([0, 1, 1, 0, 1, 1], bool)
    nodes = [
        node(op, f"data {places} more", reduction=how)
        for op, places in (("ScatterElements", "places"), ("ScatterND", "rows"))
        for how in ("add", "mul", "max", "min")
    ]
    feeds = {"data": data, "more": more, "places": ints(0, 1, 1, 3, 4, 4)}
    check(nodes, {**feeds, "rows": feeds["places"].reshape(6, 1)}, oracle=_of_numbers)


def _of_numbers(model: ModelProto, feeds: Arrays) -> dict[str, Array]:
    combine = {"add": np.maximum, "max": np.maximum, "mul": np.minimum, "min": np.minimum}
    answers: dict[str, Array] = {}
    for each in model.graph.node:
        (reduction,) = (item.s.decode() for item in each.attribute if item.name == "reduction")
        answers[each.output[0]] = feeds["data"].copy()
        combine[reduction].at(answers[each.output[0]], feeds["places"], feeds["more"])
    return answers
