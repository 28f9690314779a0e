"""Axes from the end, steps backwards, pads that crop."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import check, ints, node, numbers, onnxruntime

FAR = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((-1, 5), (-10, 0), (0, -1), (-2, -1)),
        ((100, 3), (-100, -2), (0, -1), (-1, 2)),
        ((-3,), (FAR.max,), (-2,), (1,)),
        ((-1,), (FAR.min,), (1,), (-1,)),
        ((0, -4, 6), (5, -1, -8), (-3, 1, -1), (2, 2, -3)),
        ((FAR.max,), (FAR.min,), (0,), (-3,)),
    ],
)
def test_slices(
    starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    nodes = [node("Slice", "x s e a t", "part"), node("Neg", "part")]
    constants = {"s": ints(*starts), "e": ints(*ends), "a": ints(*axes), "t": ints(*steps)}
    check(nodes, {"x": numbers(5, 6, 7)}, constants)


def test_slices_backwards_from_before_the_start() -> None:
    """Checks that such slices begin with the first element, as ONNX defines; numpy's are empty."""
    constants = {"s": ints(-9), "e": ints(FAR.min), "a": ints(0), "t": ints(-2)}
    nodes = [node("Slice", "x s e a t", "part"), node("Neg", "part")]
    check(nodes, {"x": numbers(5, 6, 7)}, constants, oracle=onnxruntime)


def test_axes() -> None:
    nodes = [
        node("Concat", "x x", axis=-2),
        node("Softmax", "x", axis=-2),
        node("LogSoftmax", "x", axis=-3),
        node("Hardmax", "x", axis=-2),
        node("ReduceSum", "x both"),
        node("Squeeze", "y last"),
        node("Unsqueeze", "x both"),
        node("Flatten", "x", axis=-1),
        node("Gather", "x places", axis=-1),
        node("ArgMax", "x", axis=-3),
        node("CumSum", "x second", reverse=1),
        node("Split", "x", axis=-3, num_outputs=1),
        node("LayerNormalization", "x scale", axis=-1),
        node("TopK", "x three", "values indices", axis=-2),
    ]
    constants = {
        "both": ints(-1, -3),
        "last": ints(-1),
        "places": ints(-1, 0, -7),
        "second": np.array(-2, np.int64),
        "scale": np.ones(7, np.float32),
        "three": ints(3),
    }
    feeds = {"x": numbers(5, 6, 7), "y": numbers(3, 1, 2, 1)}
    check(nodes, feeds, constants, tolerance=1e-4)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_one_hot(axis: int) -> None:
    constants = {"depth": np.array(3, np.int64), "values": np.array([0, 1], np.float32)}
    nodes = [node("OneHot", "i depth values", axis=axis)]
    check(nodes, {"i": ints(0, -1, 2)}, constants, oracle=onnxruntime)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_that_crop(mode: str) -> None:
    nodes = [node("Pad", f"x {name}", mode=mode) for name in "pqr"]
    constants = {"p": ints(-1, 2, 1, -2), "q": ints(2, -1, -1, 3), "r": ints(-1, 0, -1, -2)}
    check(nodes, {"x": numbers(5, 6)}, constants, oracle=onnxruntime, opset=19)


def test_slice_beside_a_crop() -> None:
    nodes = [
        node("Slice", "x one three", "s"),
        node("Pad", "x crop", "p"),
        node("Concat", "s p", axis=0),
    ]
    constants = {"one": ints(1), "three": ints(3), "crop": ints(-1, 0, -1, 0)}
    check(nodes, {"x": numbers(5, 6)}, constants, oracle=onnxruntime, opset=19)


def test_indices_from_the_end() -> None:
    nodes = [
        node("GatherElements", "x e", axis=-1),
        node("ScatterElements", "x e u", axis=-1),
        node("GatherND", "x n"),
        node("ScatterND", "x n v"),
    ]
    feeds = {
        "x": numbers(3, 4),
        "e": np.array([[-1, 0], [-4, 3], [2, -3]], np.int64),
        "u": numbers(3, 2),
        "n": np.array([[-1, -1], [0, -4]], np.int64),
        "v": numbers(2),
    }
    check(nodes, feeds, oracle=onnxruntime)
