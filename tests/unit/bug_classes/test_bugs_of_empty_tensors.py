"""Dimensions of size 0."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from small_models import BOTH, check, ints, model_of, node, numbers, onnxruntime

import byoc_mlir

NOTHING = np.zeros((0, 3), np.float32)
HOLLOW = np.zeros((2, 0, 3), np.float32)


def test_elementwise_ops() -> None:
    unary = "Abs Exp Sqrt Tanh Sigmoid Relu Floor Elu Gelu HardSwish LeakyRelu IsNaN Identity"
    binary = "Add Sub Mul Div Max Min Pow Equal Less"
    nodes = [node(op, "e") for op in unary.split()]
    nodes += [node(op, "e r") for op in binary.split()]
    check(nodes, {"e": NOTHING, "r": np.abs(numbers(1, 3))}, targets=BOTH)


def test_products_over_nothing_are_zero() -> None:
    nodes = [
        node("MatMul", "e m"),
        node("MatMul", "k l"),
        node("Gemm", "e m four"),
        node("Gemm", "k l five"),
    ]
    feeds = {
        "e": NOTHING,
        "m": numbers(3, 4),
        "k": np.zeros((2, 0), np.float32),
        "l": np.zeros((0, 5), np.float32),
        "four": numbers(4),
        "five": numbers(5),
    }
    check(nodes, feeds, targets=BOTH)


def test_reductions_over_nothing_give_their_neutral_element() -> None:
    kinds = ["Sum", "Prod", "SumSquare", "L1", "L2", "Max", "Min", "LogSum"]
    nodes = [node(f"Reduce{kind}", "h one") for kind in kinds]
    nodes += [node("ReduceSum", "h one", keepdims=0), node("ReduceSum", "h zero")]
    nodes += [node("ReduceSum", "h"), node("ReduceMean", "h one")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy: mean of empty slice
        check(nodes, {"h": HOLLOW}, {"one": ints(1), "zero": ints(0)})


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 3, 4, 0), (2, 3, 0, 1, 2)])
def test_global_pools_over_nothing(shape: tuple[int, ...]) -> None:
    nodes = [node("GlobalAveragePool", "x", "mean"), node("GlobalMaxPool", "x", "largest")]
    data = {"x": np.zeros(shape, np.float32)}
    for targets in BOTH:
        with byoc_mlir.compile(model_of(nodes, data, {}, [], 20), targets=targets) as executable:
            found = executable.run(data)
        pooled = (2, 3, *[1] * (len(shape) - 2))
        np.testing.assert_array_equal(found["mean"], np.full(pooled, np.nan))
        np.testing.assert_array_equal(found["largest"], np.full(pooled, -np.inf))


@pytest.mark.parametrize("last", [0, 1])
def test_positions_of_nothing_in_a_constant(last: int) -> None:
    nodes = [node(op, "nothing", op, axis=1, select_last_index=last) for op in ("ArgMax", "ArgMin")]
    constant = {"nothing": np.zeros((2, 0, 0), np.float32)}
    with byoc_mlir.compile(model_of(nodes, {}, constant, [], 13), targets=()) as executable:
        found = executable.run({})
    assert all(found[op].shape == (2, 1, 0) for op in ("ArgMax", "ArgMin"))


def test_rearranging() -> None:
    nodes = [
        node("Transpose", "h"),
        node("Reshape", "h shape", allowzero=1),
        node("Concat", "h h", axis=0),
        node("Concat", "h g", axis=1),
        node("Slice", "h from to"),
        node("Gather", "g none", axis=1),
        node("Tile", "h repeats"),
        node("Flatten", "h"),
        node("Unsqueeze", "h zero"),
        node("Pad", "h pads"),
        node("Expand", "thin size"),
        node("Shape", "h"),
        node("Size", "h"),
        node("Cast", "h", to=7),
        node("CumSum", "h axis"),
        node("Softmax", "h", axis=1),
        node("Where", "c h h"),
        node("Split", "h", axis=0, num_outputs=1),
    ]
    feeds = {
        "h": HOLLOW,
        "g": numbers(2, 4, 3),
        "none": ints(),
        "thin": numbers(2, 1, 3),
        "c": np.ones((2, 1, 3), bool),
    }
    constants = {
        "shape": ints(3, 0, 2),
        "from": ints(0),
        "to": ints(1),
        "repeats": ints(1, 2, 2),
        "zero": ints(0),
        "pads": ints(0, 1, 0, 0, 1, 0),
        "size": ints(2, 0, 3),
        "axis": np.array(0, np.int64),
    }
    check(nodes, feeds, constants)


def test_batches_of_no_image() -> None:
    nodes = [
        node("Conv", "x w"),
        node("MaxPool", "x", kernel_shape=[2, 2]),
        node("AveragePool", "x", kernel_shape=[2, 2]),
        node("GlobalAveragePool", "x"),
    ]
    feeds = {"x": np.zeros((0, 3, 5, 5), np.float32)}
    check(nodes, feeds, {"w": numbers(4, 3, 3, 3)}, targets=BOTH, oracle=onnxruntime)


def test_no_indices() -> None:
    nodes = [
        node("ScatterElements", "x i u"),
        node("ScatterND", "x j v"),
        node("GatherElements", "x i"),
        node("GatherND", "x j"),
        node("TopK", "x zero", "values places", axis=1),
        node("NonZero", "nil"),
    ]
    feeds = {
        "x": numbers(3, 4),
        "i": np.zeros((0, 4), np.int64),
        "u": np.zeros((0, 4), np.float32),
        "j": np.zeros((0, 1), np.int64),
        "v": np.zeros((0, 4), np.float32),
        "nil": np.zeros((3, 4), np.float32),
    }
    check(nodes, feeds, {"zero": ints(0)})


def test_slices_to_nothing_are_used_further() -> None:
    nodes = [
        node("Slice", "x from to", "s"),
        node("Add", "s row"),
        node("Concat", "s x", axis=0),
        node("ReduceSum", "s axis"),
    ]
    constants = {"from": ints(2), "to": ints(1), "axis": ints(0)}
    check(nodes, {"x": numbers(3, 4), "row": numbers(1, 4)}, constants)
