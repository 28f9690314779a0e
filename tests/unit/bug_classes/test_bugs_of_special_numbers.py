"""NaN, infinities, signed zeros, denormals."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import parsed
from small_models import BOTH, check, floats, ints, node, onnxruntime

import byoc_mlir

SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 3e38)
ROWS = np.array(
    [[1, 2, np.inf], [1, np.nan, 2], [-np.inf, np.inf, 1], [np.nan, -np.inf, np.inf]], np.float32
)

UNARY = (
    "Abs Neg Exp Log Sqrt Tanh Sigmoid Erf Relu Floor Ceil Round Asin Acos Atan Sinh Cosh "
    "Asinh Acosh Atanh Gelu HardSwish Mish LeakyRelu Celu ThresholdedRelu Sign Reciprocal "
    "IsNaN IsInf"
)


def test_unary_ops() -> None:
    check([node(op, "x") for op in UNARY.split()], {"x": SPECIAL}, targets=BOTH)


def test_unary_ops_where_the_reference_evaluator_is_not_exact() -> None:
    nodes = [node(op, "x") for op in ("Softplus", "Softsign", "Selu", "Elu", "HardSigmoid")]
    check(nodes, {"x": SPECIAL}, targets=BOTH, oracle=onnxruntime)


def test_trigonometry() -> None:
    x = floats(np.nan, np.inf, -np.inf, 0.0, 1e-40, 1e4, -1e5)
    check([node(op, "x") for op in ("Sin", "Cos", "Tan")], {"x": x})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"])
def test_arithmetic(op: str) -> None:
    check([node(op, "x y")], {"x": SPECIAL[:, None], "y": SPECIAL}, targets=BOTH)


def test_comparisons_and_remainders() -> None:
    ops = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
    check([node(op, "x y") for op in ops], {"x": SPECIAL[:, None], "y": SPECIAL})
    x = floats(np.nan, np.inf, 1, -2, 5, 3e38)[:, None]
    check([node("Mod", "x y", fmod=1)], {"x": x, "y": floats(np.inf, -np.inf, 2, np.nan, 0)})


def test_clips() -> None:
    nodes = [node("Clip", "x low high"), node("Clip", "x low"), node("Clip", "x _ high")]
    constants = {"low": np.array(-2, np.float32), "high": np.array(2, np.float32)}
    check(nodes, {"x": SPECIAL}, constants, targets=BOTH)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(keepdims: int) -> None:
    kinds = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare"]
    nodes = [node(f"Reduce{kind}", "x axis", keepdims=keepdims) for kind in kinds]
    nodes += [node(f"Reduce{kind}", "x first", keepdims=keepdims) for kind in kinds]
    check(nodes, {"x": ROWS}, {"axis": ints(1), "first": ints(0)}, targets=BOTH)


def test_places_of_extremes() -> None:
    x = np.array([[1, 2, np.inf, 2], [1, 1, 0, 0], [-np.inf, np.inf, np.inf, -np.inf]], np.float32)
    nodes = [
        node(op, "x", axis=1, select_last_index=last)
        for op in ("ArgMax", "ArgMin")
        for last in (0, 1)
    ]
    nodes += [node("TopK", "x k", "values places", axis=1), node("CumSum", "x axis")]
    check(nodes, {"x": x}, {"k": ints(3), "axis": np.array(1, np.int64)})


def test_softmax() -> None:
    x = np.array([[1, 2, -np.inf, 2], [1, 88, 0, 0], [-np.inf, -5, -np.inf, -np.inf]], np.float32)
    check([node("Softmax", "x", axis=1)], {"x": x}, targets=BOTH)
    check([node("LogSoftmax", "x", axis=1)], {"x": x}, oracle=onnxruntime)


def test_softmax_of_nothing_but_minus_infinity_is_nan() -> None:
    x = np.full((2, 4), -np.inf, np.float32)
    check([node("Softmax", "x", axis=1)], {"x": x}, oracle=onnxruntime)


def test_softmax_of_nan_is_nan() -> None:
    x = np.array([[np.nan, 1, 2, 3], [1, 2, 3, 4]], np.float32)
    check([node("Softmax", "x", axis=1)], {"x": x})


def test_products() -> None:
    a = np.array([[0, 1, np.inf], [np.nan, 0, 0], [0, 0, 0]], np.float32)
    b = np.array([[np.inf, 1], [1, 1], [1, 0]], np.float32)
    check([node("MatMul", "a b")], {"a": a, "b": b}, targets=BOTH)


def test_choices_do_not_compute_with_what_is_not_chosen() -> None:
    nodes = [
        node("Log", "x", "log"),
        node("Less", "x zero", "negative"),
        node("Where", "negative zero log"),
        node("Where", "negative x y"),
    ]
    feeds = {"x": SPECIAL, "y": SPECIAL[::-1].copy()}
    check(nodes, feeds, {"zero": np.array(0, np.float32)})


def test_layer_norm() -> None:
    x = np.array([[3, np.inf, 1], [1, np.nan, 1], [1, 2, 4]], np.float32)
    check([node("LayerNormalization", "x s")], {"x": x}, {"s": np.ones(3, np.float32)})


def test_pools_of_infinities() -> None:
    x = np.array([[[[1, -np.inf, 3], [4, 2, np.inf], [-np.inf, -np.inf, -7]]]], np.float32)
    nodes = [node("MaxPool", "x", kernel_shape=[2, 2], pads=[1, 1, 0, 0])]
    check(nodes, {"x": x}, targets=BOTH, oracle=onnxruntime)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_infinity_on_axes_that_keep_their_size(mode: str) -> None:
    """Checks sizes that depend on values, for which each axis may be resized."""
    x = np.ones((1, 1, 12, 5), np.float32)
    x[0, 0, 6, 2] = np.inf
    nodes = [
        node("Less", "x x", "less"),
        node("Cast", "less", "numbers", to=7),
        node("ReduceSum", "numbers", "none", keepdims=0),
        node("Add", "sizes none", "wanted"),
        node("Resize", "x _ _ wanted", mode=mode),
    ]
    check(nodes, {"x": x}, {"sizes": ints(1, 1, 24, 12)}, oracle=onnxruntime)


def test_the_first_nan_is_the_largest_of_a_window_with_its_position() -> None:
    x = floats(1, np.nan, np.nan, 2, 3, 1, np.nan, np.inf, 4).reshape(1, 1, 9)
    model = parsed(
        "(float[1,1,9] x) => (float[1,1,3] y, int64[1,1,3] i)",
        "y, i = MaxPool <kernel_shape = [3], strides = [3]> (x)",
    )
    with byoc_mlir.compile(model, (), cache=False) as executable:
        found = executable.run({"x": x})
    np.testing.assert_array_equal(found["y"], floats(np.nan, 3, np.nan).reshape(1, 1, 3))
    np.testing.assert_array_equal(found["i"], ints(1, 4, 6).reshape(1, 1, 3))
