"""Integers of all widths: wrap-around, signs, and indices of mixed types."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from small_models import check, ints, node, numbers, onnxruntime

SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_arithmetic_wraps(dtype: type[np.integer]) -> None:
    info = np.iinfo(dtype)
    signed, wide = info.min < 0, info.bits >= 32
    lhs = np.array([info.min, info.max, 3 - 4 * signed, 7, 5, 0], dtype)
    rhs = np.array([3, 2, 5 - 10 * signed, 3 - 6 * signed, 4, 9], dtype)
    ops = "Add Sub Mul Div Mod Max Min Equal Less Greater BitwiseAnd BitwiseOr BitwiseXor"
    nodes = [node(op, "x y") for op in ops.split()]
    nodes += [node(op, "x") for op in ("BitwiseNot", "ArgMax", "ArgMin")]
    nodes += [node(op, "x") for op in ("ReduceMax", "ReduceMin") if info.bits != 16]  # as ONNX says
    nodes += [node(op, "x") for op in ("Abs", "Neg", "Sign") if signed]
    nodes += [node(op, "x") for op in ("ReduceSum", "ReduceProd") if wide]
    nodes += [node("Clip", "x low high")] if wide else []
    nodes += [] if signed else [node("BitShift", "x n", direction=d) for d in ("LEFT", "RIGHT")]
    constants = {"low": np.array(2, dtype), "high": np.array(6, dtype)}
    check(nodes, {"x": lhs, "y": rhs, "n": np.array([1, 7, 0, 3, 2, 5], dtype)}, constants)


def test_remainders_take_the_sign_that_is_asked_for() -> None:
    nodes = [node("Mod", "a b"), node("Mod", "a b", fmod=1), node("Mod", "c d", fmod=1)]
    a, b = np.array([-4, 7, 5, 4, -7, 8], np.int32), np.array([2, -3, 8, -2, 3, 5], np.int32)
    check(nodes, {"a": a, "b": b, "c": a + np.float32(0.3), "d": b + np.float32(0.1)})


def test_powers_of_two_types() -> None:
    nodes = [node("Pow", pair) for pair in ("x p", "i q", "i j", "j i", "j q", "h p")]
    feeds = {
        "x": np.abs(numbers(3, 3)),
        "p": np.array(2, np.int32),
        "i": np.array([1, 2, 3], np.int32),
        "q": np.array(2.5, np.float32),
        "j": np.array([3, 2, 1], np.int64),
        "h": numbers(3).astype(np.float16),
    }
    check(nodes, feeds, tolerance=1e-3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices(dtype: type[np.integer]) -> None:
    nodes = [
        node("Gather", "x i", axis=1),
        node("GatherElements", "x e", axis=1),
        node("ScatterElements", "x e u", axis=1),
        node("Slice", "x begin end axes steps"),
        node("OneHot", "i depth values"),
    ]
    feeds = {
        "x": numbers(3, 4),
        "i": np.array([[0, -1], [2, 1]], dtype),
        "e": np.array([[0, -1], [2, 1], [3, 0]], dtype),
        "u": numbers(3, 2),
    }
    constants = {
        "begin": np.array([0, 1], dtype),
        "end": np.array([3, -1], dtype),
        "axes": np.array([0, 1], dtype),
        "steps": np.array([2, 1], dtype),
        "depth": np.array(4, dtype),
        "values": np.array([0, 1], np.float32),
    }
    check(nodes, feeds, constants)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_shapes_computed_in_either_type(dtype: type[np.integer]) -> None:
    to = TensorProto.INT32 if dtype is np.int32 else TensorProto.INT64
    nodes = [
        node("Shape", "x", "shape"),
        node("Cast", "shape", "cast", to=to),
        node("Gather", "cast zero", "rows"),
        node("Mul", "rows two", "doubled"),
        node("Cast", "doubled", "wide", to=TensorProto.INT64),
        node("Unsqueeze", "wide axis", "first"),
        node("Concat", "first rest", "target", axis=0),
        node("Reshape", "x target", "y"),
        node("Range", "zero rows one", "places"),
        node("Gather", "x places", "z", axis=0),
        node("GatherND", "x corners", "w"),
    ]
    constants = {
        "zero": np.array(0, dtype),
        "two": np.array(2, dtype),
        "one": np.array(1, dtype),
        "axis": ints(0),
        "rest": ints(-1),
        "corners": np.array([[0, 1], [2, -1]], np.int64),
    }
    check(nodes, {"x": numbers(3, 4)}, constants)


def test_results_of_argmax_as_indices_of_either_type() -> None:
    nodes = [
        node("ArgMax", "x", "a", axis=1),
        node("Cast", "a", "a32", to=TensorProto.INT32),
        node("GatherElements", "x a", axis=1),
        node("GatherElements", "x a32", axis=1),
        node("Gather", "x a32", axis=1),
        node("OneHot", "a depth values"),
        node("TopK", "x k", "values_k places_k"),
        node("Gather", "x places_k", axis=1),
    ]
    constants = {
        "depth": np.array([4], np.int32),
        "values": np.array([0, 1], np.float32),
        "k": ints(2),
    }
    check(nodes, {"x": numbers(3, 4)}, constants, oracle=onnxruntime, opset=18)
