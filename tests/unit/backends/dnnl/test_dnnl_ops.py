"""Single ops that oneDNN runs, in every form its rules accept, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, model, node, scalar
from onnx import NodeProto, helper

LARGE = (1, 16, 24, 24)

CASES: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "max_pool": (
        "MaxPool",
        LARGE,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]},
    ),
    "max_pool_ceil": (
        "MaxPool",
        (2, 3, 10, 11),
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    "max_pool_1d": ("MaxPool", (1, 8, 33), {"kernel_shape": [3], "strides": [2]}),
    "max_pool_3d": ("MaxPool", (1, 4, 6, 7, 8), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
    "avg_pool_exclude": ("AveragePool", LARGE, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "avg_pool_include": (
        "AveragePool",
        LARGE,
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "avg_pool_ceil": (
        "AveragePool",
        (1, 4, 10, 10),
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    "global_average_pool": ("GlobalAveragePool", LARGE, {}),
    "global_max_pool": ("GlobalMaxPool", LARGE, {}),
    "softmax_last": ("Softmax", (4, 33), {"axis": -1}),
    "softmax_channels": ("Softmax", (2, 7, 5, 5), {"axis": 1}),
    "log_softmax": ("LogSoftmax", (4, 33), {"axis": 1}),
    "lrn": ("LRN", LARGE, {"size": 5, "alpha": 0.001, "beta": 0.75, "bias": 1.5}),
    "reduce_mean": ("ReduceMean", LARGE, {"keepdims": 0}),
    "reduce_max": ("ReduceMax", LARGE, {"keepdims": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_op_is_offloaded_and_agrees(case: str) -> None:
    op_type, shape, attributes = CASES[case]
    weights: dict[str, Any] = {}
    inputs = "x"
    if op_type.startswith("Reduce"):
        inputs, weights = "x axes", {"axes": np.array([2, 3], np.int64)}
    report = check(model([node(op_type, inputs, **attributes)], {"x": shape}, weights))
    assert report.counts() == {"dnnl": 1}


def pool(source: str, result: str) -> NodeProto:
    return node("MaxPool", source, result, kernel_shape=[2, 2])


def _between_pools(*nodes: NodeProto) -> list[NodeProto]:
    """Returns nodes that read `a` and write `b`, between pools, so that a host loop would split
    oneDNN's region.
    """
    return [pool("x", "a"), *nodes, pool("b", "y")]


ELEMENTWISE: dict[str, list[NodeProto]] = {
    "relu": [node("Relu", "a", "b")],
    "leaky_relu": [node("LeakyRelu", "a", "b", alpha=0.2)],
    "clip": [node("Clip", "a low high", "b")],
    "sigmoid": [node("Sigmoid", "a", "b")],
    "tanh": [node("Tanh", "a", "b")],
    "exp": [node("Exp", "a", "b")],
    "abs": [node("Abs", "a", "b")],
    "sqrt": [node("Abs", "a", "t"), node("Sqrt", "t", "b")],
    "log": [node("Exp", "a", "t"), node("Log", "t", "b")],
    "square": [node("Mul", "a a", "b")],
    "linear": [node("Mul", "a high", "t"), node("Add", "t low", "b")],
    "swish": [node("Sigmoid", "a", "t"), node("Mul", "a t", "b")],
    "hardswish": [node("HardSwish", "a", "b")],
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_between_primitives(case: str) -> None:
    nodes = _between_pools(*ELEMENTWISE[case])
    names = {name for one in nodes for name in one.input}
    numbers = {"low": scalar(-0.25), "high": scalar(0.5)}
    weights = {name: value for name, value in numbers.items() if name in names}
    report = check(model(nodes, {"x": LARGE}, weights))
    assert report.counts() == {"dnnl": len(nodes)}
    assert len({row.region for row in report}) == 1


@pytest.mark.parametrize("other", [(1, 16, 23, 23), (1, 16, 1, 1), (16, 23, 23), (23,), ()])
def test_binary_broadcasts(other: Sequence[int]) -> None:
    kinds = ["Add", "Mul", "Sub", "Div"]
    nodes = [node(kind, "a c", kind) for kind in kinds]
    nodes = _between_pools(*nodes, node("Concat", " ".join(kinds), "b", axis=1))
    report = check(model(nodes, {"x": LARGE, "c": other}), tolerance=1e-4)
    assert report.counts() == {"dnnl": len(nodes)}


@pytest.mark.parametrize("channels", [16, 12])
def test_channels_scaled_between_convolutions(channels: int) -> None:
    """Checks a product as after a squeeze and excitation; 12 channels are no whole blocks."""
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", "a", "g"),
        node("Conv", "g s", "e"),
        node("Mul", "a e", "m"),
        node("Conv", "m v", pads=[1, 1, 1, 1]),
    ]
    square = (channels, channels)
    weights = {"w": (channels, 8, 3, 3), "s": (*square, 1, 1), "v": (*square, 3, 3)}
    report = check(model(nodes, {"x": (2, 8, 20, 20)}, weights))
    assert report.counts() == {"dnnl": 5}
    assert not any(row.implementation.startswith("ref") for row in report)


def test_parts_that_lie_in_one_piece_are_views() -> None:
    nodes = [
        helper.make_node("Split", ["a"], ["p", "q"], name="split", axis=1),
        node("MatMul", "p w", "r"),
        node("MatMul", "q w", "t"),
        node("Concat", "r t", axis=1),
    ]
    nodes = [node("MatMul", "x v", "a"), *nodes]
    weights = {"split": np.array([2, 3], np.int64), "w": (16, 8), "v": (12, 16)}
    nodes[1].input.append("split")
    report = check(model(nodes, {"x": (1, 5, 12)}, weights))
    assert report.counts() == {"dnnl": 5}
    (row,) = check(model(nodes, {"x": (2, 5, 12)}, weights)).placed("host")
    assert "parts along axis 1 are not contiguous" in row.reason


@pytest.mark.parametrize("place", ["first", "last", "alone"])
def test_elementwise_that_interrupts_nothing(place: str) -> None:
    nodes = {
        "first": [node("Exp", "x", "a"), pool("a", "y")],
        "last": [pool("x", "a"), node("Exp", "a")],
        "alone": [node("Exp", "x")],
    }
    (row,) = check(model(nodes[place], {"x": LARGE})).placed("host")
    assert "exp not between two primitives (cheaper in the host's fused loop)" in row.reason


def test_reshapes_alone_stay_on_the_host() -> None:
    nodes = [node("Reshape", "x shape", "r"), node("Relu", "r")]
    shape = np.array([16, 576], np.int64)
    report = check(model(nodes, {"x": LARGE}, {"shape": shape}))
    assert "reshape away from any primitive (it is free)" in report.rows[0].reason


def test_batch_norm_that_nothing_folds() -> None:
    nodes = [node("BatchNormalization", "x s b m v", epsilon=1e-3)]
    variance = np.linspace(0.5, 2.0, 16, dtype=np.float32)
    weights = {"s": (16,), "b": (16,), "m": (16,), "v": variance}
    assert check(model(nodes, {"x": LARGE}, weights)).counts() == {"dnnl": 1}


def test_layer_norm() -> None:
    nodes = [node("LayerNormalization", "x s b", axis=-1, epsilon=1e-6)]
    report = check(model(nodes, {"x": (2, 5, 48)}, {"s": (48,), "b": (48,)}))
    assert report.counts() == {"dnnl": 1}


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_concatenation_along_every_axis(axis: int) -> None:
    shapes = {name: [2, 8, 6, 6] for name in ("a", "b", "c")}
    for size, shape in enumerate(shapes.values()):
        shape[axis] = 3 + 5 * size
    report = check(model([node("Concat", "a b c", axis=axis)], shapes))
    assert report.counts() == {"dnnl": 1}


def test_shapes_change_inside_a_region_without_moving_data() -> None:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Reshape", "c shape", "r"),
        node("MatMul", "r v"),
    ]
    weights = {"w": (8, 8, 3, 3), "shape": np.array([1, 8, 64], np.int64), "v": (64, 10)}
    report = check(model(nodes, {"x": (1, 8, 8, 8)}, weights))
    assert report.counts() == {"dnnl": 3}
    assert len({row.region for row in report}) == 1


REFUSED: dict[str, tuple[str, tuple[int, ...], dict[str, Any], str]] = {
    "small_relu": (
        "Relu",
        (1, 4, 4, 4),
        {},
        "alone on [1, 4, 4, 4] (cheaper in the host's fused loop)",
    ),
    "average_beyond_padding": (
        "AveragePool",
        (1, 4, 10, 10),
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
        "count_include_pad with windows beyond the padding",
    ),
    "max_pool_dilated": (
        "MaxPool",
        LARGE,
        {"kernel_shape": [2, 2], "dilations": [2, 3]},
        "dilation [2, 3] (oneDNN has only slow reference code",
    ),
    "lrn_of_another_power": ("LRN", LARGE, {"size": 5, "beta": 0.6}, "beta 0.6"),
    "mean_of_rows": ("ReduceMean", LARGE, {}, "oneDNN's pool takes all spatial ones"),
    "layer_norm_of_planes": (
        "LayerNormalization",
        LARGE,
        {"axis": 2},
        "oneDNN normalises the last",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_have_reasons_and_right_numbers(case: str) -> None:
    op_type, shape, attributes, reason = REFUSED[case]
    inputs, weights = "x", {}
    if op_type.startswith("Reduce"):
        inputs, weights = "x axes", {"axes": np.array([3], np.int64)}
    if op_type == "LayerNormalization":
        inputs, weights = "x s b", {"s": LARGE[2:], "b": LARGE[2:]}
    report = check(model([node(op_type, inputs, **attributes)], {"x": shape}, weights))
    (row,) = report.placed("host")
    assert reason in row.reason
