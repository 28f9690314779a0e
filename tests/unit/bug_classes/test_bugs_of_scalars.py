"""Operands of rank 0 and 1, where others expect dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import BOTH, check, floats, ints, node, numbers, onnxruntime

SCALAR = np.array(0.7, np.float32)
OTHER = np.array(-1.3, np.float32)

UNARY = (
    "Abs Neg Exp Log Sqrt Tanh Sigmoid Erf Relu Floor Ceil Round Sin Cos Tan Asin Acos "
    "Atan Sinh Cosh Asinh Atanh Elu Selu Gelu HardSigmoid HardSwish Mish LeakyRelu Celu "
    "ThresholdedRelu Sign Reciprocal Identity IsNaN IsInf Shape Size"
)


def test_unary_ops() -> None:
    check([node(op, "s") for op in UNARY.split()], {"s": SCALAR}, targets=BOTH)


def test_unary_ops_that_the_reference_evaluator_lacks_for_scalars() -> None:
    nodes = [node("Softplus", "s"), node("Softsign", "s"), node("ReduceLogSumExp", "s")]
    check(nodes, {"s": SCALAR}, oracle=onnxruntime)


@pytest.mark.parametrize(
    "ops", ["Add Sub Mul Div Max Min", "Equal Less Greater LessOrEqual GreaterOrEqual"]
)
def test_binary_ops(ops: str) -> None:
    pairs = ("s t", "s x", "x t", "v s", "s v")
    nodes = [node(op, pair) for op in ops.split() for pair in pairs]
    feeds = {"s": SCALAR, "t": OTHER, "x": numbers(3, 4), "v": floats(2)}
    check(nodes, feeds, targets=BOTH)


def test_logic_and_choice() -> None:
    pairs = ("b b", "b c", "c b")
    nodes = [node(op, pair) for op in ("And", "Or", "Xor") for pair in pairs]
    nodes += [node("Not", "b")]
    nodes += [node("Where", f"{c} {x} {y}") for c in "bc" for x in "sx" for y in "ty"]
    feeds = {
        "b": np.array(True),
        "c": numbers(3, 4) > 0,
        "s": SCALAR,
        "t": OTHER,
        "x": numbers(3, 4),
        "y": numbers(3, 4, seed=1),
    }
    check(nodes, feeds)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(keepdims: int) -> None:
    kinds = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "SumSquare"]
    nodes = [node(f"Reduce{kind}", "s", keepdims=keepdims) for kind in kinds]
    nodes += [
        node(f"Reduce{kind}", name, noop_with_empty_axes=1) for kind in kinds for name in "sx"
    ]
    check(nodes, {"s": SCALAR, "x": np.abs(numbers(3, 4))}, tolerance=1e-4)


def test_places() -> None:
    nodes = [
        node("Gather", "x i", axis=0),
        node("Gather", "x i", axis=1),
        node("Gather", "v i", "t"),
        node("Where", "b t x"),
        node("Where", "c t x"),
        node("Where", "c x t"),
        node("Where", "b t t"),
    ]
    feeds = {
        "x": numbers(3, 4),
        "v": numbers(5),
        "i": np.array(-1, np.int64),
        "b": np.array(True),
        "c": numbers(3, 4) > 0,
    }
    check(nodes, feeds, targets=BOTH)


def test_shapes() -> None:
    nodes = [
        node("Reshape", "s one"),
        node("Reshape", "v none"),
        node("Unsqueeze", "s axis"),
        node("Expand", "s size"),
        node("Squeeze", "v"),
        node("Flatten", "s"),
        node("Transpose", "s"),
        node("Cast", "s", to=7),
        node("Tile", "s none"),
        node("Concat", "v v", axis=0),
        node("Clip", "s low high"),
        node("Clip", "s _ high"),
    ]
    constants = {
        "one": ints(1, 1),
        "none": ints(),
        "axis": ints(0),
        "size": ints(2, 3),
        "low": np.array(-0.5, np.float32),
        "high": np.array(0.5, np.float32),
    }
    check(nodes, {"s": SCALAR, "v": floats(3)}, constants)


def test_constants_that_differ_in_rank_alone() -> None:
    nodes = [node("Mul", "s one", "a"), node("Add", "a vector"), node("Add", "a matrix")]
    values = {"one": np.array(2.0), "vector": np.array([2.0]), "matrix": np.array([[2.0]])}
    constants = {name: array.astype(np.float32) for name, array in values.items()}
    check(nodes, {"s": SCALAR}, constants)


def test_products() -> None:
    pairs = ("v v", "v m", "n v", "v bm", "bn v")
    nodes = [node("MatMul", pair) for pair in pairs]
    nodes += [node("Gemm", f"n m {name}") for name in ("s", "three", "column", "cell")]
    feeds = {
        "v": numbers(4),
        "m": numbers(4, 3),
        "n": numbers(3, 4, seed=1),
        "bm": numbers(2, 4, 3),
        "bn": numbers(2, 3, 4),
        "s": SCALAR,
        "three": numbers(3),
        "column": numbers(3, 1),
        "cell": numbers(1, 1),
    }
    check(nodes, feeds, targets=BOTH)


@pytest.mark.parametrize("axis", [0, -1])
def test_vectors(axis: int) -> None:
    nodes = [node(op, "v", axis=axis) for op in ("Softmax", "LogSoftmax", "Hardmax")]
    nodes += [
        node(op, "v", axis=axis, keepdims=kept) for op in ("ArgMax", "ArgMin") for kept in (0, 1)
    ]
    check(nodes, {"v": numbers(5)}, targets=BOTH)
