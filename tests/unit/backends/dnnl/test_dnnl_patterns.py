"""Patterns of oneDNN's table: the composite of each, and its results."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, model, node, scalar
from onnx import NodeProto

ACTIVATIONS = {
    "relu": [node("Relu", "c")],
    "leaky_relu": [node("LeakyRelu", "c", alpha=0.1)],
    "clip": [node("Clip", "c zero six")],
    "sigmoid": [node("Sigmoid", "c")],
    "tanh": [node("Tanh", "c")],
    "abs": [node("Abs", "c")],
    "swish": [node("Sigmoid", "c", "s"), node("Mul", "s c")],
    "hardswish": [
        node("Add", "c three", "t"),
        node("Clip", "t zero six", "u"),
        node("Mul", "c u", "v"),
        node("Div", "v six"),
    ],
    "mish": [
        node("Exp", "c", "e"),
        node("Add", "e one", "p"),
        node("Log", "p", "l"),
        node("Tanh", "l", "t"),
        node("Mul", "t c"),
    ],
    "gelu_erf": [
        node("Div", "c root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "p"),
        node("Mul", "c p", "m"),
        node("Mul", "m half"),
    ],
    "gelu_tanh": [
        node("Mul", "c c", "c2"),
        node("Mul", "c2 c", "c3"),
        node("Mul", "c3 k", "s"),
        node("Add", "c s", "a"),
        node("Mul", "a rootpi", "r"),
        node("Tanh", "r", "t"),
        node("Add", "t one", "p"),
        node("Mul", "c half", "h"),
        node("Mul", "h p"),
    ],
}
NUMBERS = {
    "zero": scalar(0.0),
    "one": scalar(1.0),
    "three": scalar(3.0),
    "six": scalar(6.0),
    "half": scalar(0.5),
    "root": scalar(math.sqrt(2.0)),
    "rootpi": scalar(math.sqrt(2 / math.pi)),
    "k": scalar(0.044715),
}


def _used(nodes: Sequence[NodeProto], weights: dict[str, Any]) -> dict[str, Any]:
    names = {name for one in nodes for name in one.input}
    return {name: value for name, value in weights.items() if name in names}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_convolution_with_bias_and_activation(activation: str) -> None:
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), *ACTIVATIONS[activation]]
    weights = _used(nodes, {"w": (12, 5, 3, 3), "b": (12,), **NUMBERS})
    report = check(model(nodes, {"x": (2, 5, 9, 9)}, weights))
    assert dict(report.composites) == {f"dnnl.conv2d_bias_{activation}": 1}
    assert report.counts() == {"dnnl": len(nodes)}


@pytest.mark.parametrize("activation", ["relu", "gelu_erf", "swish"])
def test_dense_with_bias_and_activation(activation: str) -> None:
    nodes = [node("Gemm", "x w b", "c", transB=1), *ACTIVATIONS[activation]]
    weights = _used(nodes, {"w": (24, 16), "b": (24,), **NUMBERS})
    report = check(model(nodes, {"x": (7, 16)}, weights))
    assert dict(report.composites) == {f"dnnl.dense_bias_{activation}": 1}


FORMS: dict[str, dict[str, int]] = {
    "plain": {},
    "grouped": {"group": 2},
    "depthwise": {"group": 4},
    "dilated": {"dilations": 2},
    "strided": {"strides": 2, "group": 2},
}


@pytest.mark.pairs
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_convolutions_of_every_rank(op_type: str, form: str, rank: int) -> None:
    groups = FORMS[form].get("group", 1)
    lists = {name: [value] * rank for name, value in FORMS[form].items() if name != "group"}
    if op_type == "ConvTranspose" and form == "strided":
        lists["output_padding"] = [1] * rank
    nodes = [
        node(op_type, "x w b", "c", pads=[1] * rank + [0] * rank, group=groups, **lists),
        node("Relu", "c"),
    ]
    shape = (8, 4 // groups) if op_type == "Conv" else (4, 8 // groups)
    report = check(
        model(nodes, {"x": (2, 4, *(6, 7, 8)[:rank])}, {"w": (*shape, *[3] * rank), "b": (8,)})
    )
    kind = "conv{}d" if op_type == "Conv" else "conv{}d_transpose"
    assert dict(report.composites) == {f"dnnl.{kind.format(rank)}_bias_relu": 1}


OPS = {
    "hardswish": [node("HardSwish", "c")],
    "hardswish, halved": [node("HardSigmoid", "c", "h", alpha=0.2), node("Mul", "h c")],
    "elu": [node("Elu", "c", alpha=0.7)],
    "mish": [node("Mish", "c")],
    "gelu_erf": [node("Gelu", "c")],
    "gelu_tanh": [node("Gelu", "c", approximate="tanh")],
    "clip": [node("Min", "c six", "m"), node("Max", "m one")],
    "clip, upwards": [node("Relu", "c", "r"), node("Min", "r six")],
    "exp": [node("Exp", "c")],
    "sqrt": [node("Abs", "c", "a"), node("Sqrt", "a")],
}


@pytest.mark.parametrize("case", OPS)
def test_activations_that_onnx_has_an_op_for(case: str) -> None:
    nodes = [node("Conv", "x w b", "c"), *OPS[case]]
    weights = _used(nodes, {"w": (12, 5, 3, 3), "b": (12,), **NUMBERS})
    report = check(model(nodes, {"x": (2, 5, 9, 9)}, weights))
    name = "abs" if case == "sqrt" else case.partition(",")[0]
    assert dict(report.composites) == {f"dnnl.conv2d_bias_{name}": 1}


@pytest.mark.parametrize("shape", [(2, 12, 9, 9), (12, 1, 1), ()])
def test_multiplied_with_another_tensor(shape: tuple[int, ...]) -> None:
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Mul", "r c")]
    weights = {"w": (12, 5, 3, 3), "b": (12,)}
    report = check(model(nodes, {"x": (2, 5, 9, 9), "r": shape}, weights))
    assert dict(report.composites) == {"dnnl.conv2d_bias_mul": 1}


@pytest.mark.parametrize("shape", [(2, 12, 1, 1), (1, 1, 9, 9), (3, 2, 12, 9, 9)])
def test_multiplied_with_what_no_post_op_broadcasts(shape: tuple[int, ...]) -> None:
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Mul", "r c")]
    weights = {"w": (12, 5, 3, 3), "b": (12,)}
    report = check(model(nodes, {"x": (2, 5, 9, 9), "r": shape}, weights))
    assert dict(report.composites) == {"dnnl.conv2d_bias": 1}
    (row,) = report.placed("host")
    expected = "is broadcast to" if len(shape) == 5 else "neither one value, nor one per channel"
    assert re.search(rf"dnnl.conv2d_bias_mul: [^;]*{expected}", row.reason)


def test_a_gate_and_a_sum_with_an_activation() -> None:
    nodes = [
        node("MatMul", "x w", "c"),
        node("Sigmoid", "c", "s"),
        node("Mul", "s x", "g"),
        node("MatMul", "g w", "d"),
        node("Add", "d x", "e"),
        node("HardSwish", "e"),
    ]
    report = check(model(nodes, {"x": (6, 16)}, {"w": (16, 16)}))
    kinds = sorted(name.partition("_")[2] for name in report.composites)
    assert kinds == ["sigmoid_mul", "sum_hardswish"]


@pytest.mark.parametrize("activated", [True, False])
def test_batch_norm_before_a_convolution(activated: bool) -> None:
    variance = np.linspace(0.5, 2.0, 16, dtype=np.float32)
    nodes = [
        node("BatchNormalization", "x s t m v", "n"),
        *([node("Relu", "n", "r")] if activated else []),
        node("Conv", "r w b" if activated else "n w b"),
    ]
    weights = {name: (16,) for name in "stm"} | {"v": variance, "w": (8, 16, 3, 3), "b": (8,)}
    report = check(model(nodes, {"x": (1, 16, 24, 24)}, weights))
    assert report.counts() == {"dnnl": len(nodes)}
    assert ("dnnl.batch_norm_relu" in report.composites) == activated


@pytest.mark.parametrize("order", ["x1 y1", "y1 x1"])
def test_residual_sum(order: str) -> None:
    nodes = [
        node("Conv", "x w a", "y1", pads=[1, 1, 1, 1]),
        node("Conv", "y1 v b", "x1", pads=[1, 1, 1, 1]),
        node("Add", order, "s"),
        node("Relu", "s"),
    ]
    weights = {"w": (8, 8, 3, 3), "a": (8,), "v": (8, 8, 3, 3), "b": (8,)}
    report = check(model(nodes, {"x": (1, 8, 10, 10)}, weights))
    assert dict(report.composites) == {"dnnl.conv2d_bias_sum_relu": 1, "dnnl.conv2d_bias": 1}


def test_residual_that_is_read_again_is_not_overwritten() -> None:
    nodes = [
        node("Conv", "x w a", "r", pads=[1, 1, 1, 1]),
        node("Conv", "r v b", "c", pads=[1, 1, 1, 1]),
        node("Add", "c r", "s"),
        node("Conv", "s w a", "d", pads=[1, 1, 1, 1]),
        node("Add", "d r", "t"),
        node("Concat", "t s", axis=1),
    ]
    weights = {"w": (16, 16, 3, 3), "a": (16,), "v": (16, 16, 3, 3), "b": (16,)}
    report = check(model(nodes, {"x": (1, 16, 10, 10)}, weights))
    assert report.composites["dnnl.conv2d_bias_sum"] == 2


@pytest.mark.parametrize("batch", [1, 3])
def test_convolution_of_one_pixel(batch: int) -> None:
    nodes = [
        node("GlobalAveragePool", "x", "p"),
        node("Conv", "p w b", "c"),
        node("Relu", "c", "r"),
        node("Conv", "r v d", "e"),
        node("Sigmoid", "e", "s"),
        node("Mul", "x s", "m"),
        node("MaxPool", "m", kernel_shape=[2, 2]),
    ]
    weights = {"w": (5, 16, 1, 1), "b": (5,), "v": (16, 5, 1, 1), "d": (16,)}
    report = check(model(nodes, {"x": (batch, 16, 20, 20)}, weights))
    assert report.counts() == {"dnnl": 7}
    assert not any(row.implementation.startswith("ref") for row in report)


@pytest.mark.parametrize("slopes", [(12, 1, 1), (1,), (12, 9, 9)])
def test_prelu(slopes: tuple[int, ...]) -> None:
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("PRelu", "c s")]
    weights = {"w": (12, 5, 3, 3), "b": (12,), "s": slopes}
    report = check(model(nodes, {"x": (2, 5, 9, 9)}, weights))
    per_element = len(slopes) == 3 and slopes[1] != 1
    expected = "dnnl.conv2d_bias" if per_element else "dnnl.conv2d_bias_prelu"
    assert dict(report.composites) == {expected: 1}


def test_prelu_of_a_product_stays_on_the_host() -> None:
    nodes = [node("Gemm", "x w b", "d", transB=1), node("PRelu", "d s")]
    weights = {"w": (24, 16), "b": (24,), "s": (24,)}
    report = check(model(nodes, {"x": (8, 16)}, weights))
    assert report.composites == {"dnnl.dense_bias": 1}
    assert report.counts() == {"dnnl": 1, "host": 1}


def test_constants_are_read_not_assumed() -> None:
    nodes = [
        node("Conv", "x w b", "c"),
        node("Div", "c seven", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "p"),
        node("Mul", "c p", "m"),
        node("Mul", "m half"),
    ]
    weights = {"w": (4, 3, 1, 1), "b": (4,), "seven": scalar(7.0), **NUMBERS}
    report = check(model(nodes, {"x": (1, 3, 8, 8)}, _used(nodes, weights)))
    assert dict(report.composites) == {"dnnl.conv2d_bias": 1}
    assert all("gelu" not in row.composite for row in report)


def test_bias_over_another_axis_is_no_bias() -> None:
    nodes = [node("Conv", "x w", "c"), node("Add", "c r")]
    weights = {"w": (8, 8, 1, 1), "r": (1, 1, 1, 5)}
    report = check(model(nodes, {"x": (1, 8, 5, 5)}, weights))
    assert not report.composites
    (row,) = report.placed("host")
    assert "dnnl.conv2d_bias: bias tensor<1x1x1x5xf32> is not one value per channel" in row.reason


def test_matmul_scaled_and_masked() -> None:
    nodes = [
        node("MatMul", "q k", "c"),
        node("Div", "c eight", "d"),
        node("Add", "d mask", "s"),
        node("Softmax", "s", axis=-1),
    ]
    shapes = {"q": (2, 4, 16, 32), "k": (2, 4, 32, 16), "mask": (2, 1, 1, 16)}
    report = check(model(nodes, shapes, {"eight": scalar(8.0)}))
    assert dict(report.composites) == {"dnnl.matmul_scale_sum": 1}
    assert report.counts() == {"dnnl": 4}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 8), (8, 6)),
        ((3, 5, 8), (8, 6)),
        ((2, 3, 5, 8), (3, 8, 6)),
        ((1, 5, 8), (4, 8, 6)),
        ((2, 1, 5, 8), (1, 3, 8, 6)),
    ],
)
def test_matmul_broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    report = check(model([node("MatMul", "a b")], {"a": a, "b": b}))
    assert report.counts() == {"dnnl": 1}
    constant = check(model([node("MatMul", "a b")], {"a": a}, {"b": b}))
    assert constant.counts() == {"dnnl": 1}


def test_dense_on_stacked_rows_with_a_full_sum() -> None:
    nodes = [
        node("MatMul", "x w", "c"),
        node("Add", "c b", "d"),
        node("Add", "d r"),
    ]
    report = check(model(nodes, {"x": (2, 6, 16), "r": (2, 6, 8)}, {"w": (16, 8), "b": (8,)}))
    assert report.counts() == {"dnnl": 3}
    assert sum(report.composites.values()) == 1


def test_large_weights_of_two_layers_are_one() -> None:
    weight = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    nodes = [
        node("MatMul", "x w", "a"),
        node("Relu", "a", "r"),
        node("MatMul", "r v"),
    ]
    report = check(model(nodes, {"x": (4, 64)}, {"w": weight, "v": weight.copy()}))
    assert report.counts() == {"dnnl": 3}


def test_weights_that_fill_huge_pages() -> None:
    """Checks weights whose memory is allocated as huge pages and ends in the middle of a page."""
    weight = np.random.default_rng(0).standard_normal((1100, 1030), dtype=np.float32) / 32
    report = check(model([node("MatMul", "x w")], {"x": (64, 1100)}, {"w": weight}))
    assert report.counts() == {"dnnl": 1}


@pytest.mark.parametrize("power", ["Pow", "Mul"])
def test_layer_norm_written_out(power: str) -> None:
    nodes = [
        node("ReduceMean", "x last", "m"),
        node("Sub", "x m", "c"),
        node("Pow", "c two", "q") if power == "Pow" else node("Mul", "c c", "q"),
        node("ReduceMean", "q last", "v"),
        node("Add", "v epsilon", "e"),
        node("Sqrt", "e", "d"),
        node("Div", "c d", "n"),
        node("Mul", "n s", "t"),
        node("Add", "t b"),
    ]
    weights = {"last": np.array([-1], np.int64), "two": scalar(2.0), "epsilon": scalar(1e-3)}
    weights |= {"s": (32,), "b": (32,)}
    report = check(model(nodes, {"x": (2, 6, 32)}, _used(nodes, weights)))
    assert dict(report.composites) == {"dnnl.layer_norm": 1}


def test_layer_norm_over_another_axis_is_none() -> None:
    nodes = [
        node("ReduceMean", "x axis", "m"),
        node("Sub", "x m", "c"),
        node("Mul", "c c", "q"),
        node("ReduceMean", "q axis", "v"),
        node("Add", "v epsilon", "e"),
        node("Sqrt", "e", "d"),
        node("Div", "c d", "n"),
        node("Mul", "n s", "t"),
        node("Add", "t b"),
    ]
    weights = {"axis": np.array([1], np.int64), "epsilon": scalar(1e-3), "s": (32,), "b": (32,)}
    report = check(model(nodes, {"x": (2, 6, 32)}, weights))
    assert not report.composites


def test_causal_mask_that_no_product_can_add() -> None:
    nodes = [node("MatMul", "q k", "c"), node("Add", "c mask")]
    shapes = {"q": (2, 4, 16, 32), "k": (2, 4, 32, 16), "mask": (1, 1, 16, 16)}
    report = check(model(nodes, shapes))
    assert report.counts() == {"dnnl": 2}
    assert all("ref" not in row.implementation for row in report)


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_channel_shuffle(groups: int) -> None:
    size = 24 // groups
    nodes = [
        node("Conv", "x w", "c"),
        node("Reshape", "c split", "s"),
        node("Transpose", "s", "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t join", "u"),
        node("Conv", "u w"),
    ]
    weights = {
        "w": (24, 24, 1, 1),
        "split": np.array([1, groups, size, 6, 6], np.int64),
        "join": np.array([1, 24, 6, 6], np.int64),
    }
    report = check(model(nodes, {"x": (1, 24, 6, 6)}, weights))
    assert report.composites["dnnl.channel_shuffle"] == 1
    assert len({row.region for row in report}) == 1


def test_a_transpose_of_pixels_is_no_shuffle() -> None:
    nodes = [
        node("Reshape", "x split", "s"),
        node("Transpose", "s", "t", perm=[0, 1, 2, 4, 3]),
        node("Reshape", "t join"),
    ]
    weights = {
        "split": np.array([1, 4, 6, 6, 6], np.int64),
        "join": np.array([1, 24, 6, 6], np.int64),
    }
    report = check(model(nodes, {"x": (1, 24, 6, 6)}, weights))
    assert not report.composites
