"""Positions computed from data: none of them is outside of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto
from small_models import Array, Arrays, floats, ints, model_of, node, numbers

import byoc_mlir
from byoc_mlir.errors import InvalidModelError

FAR = ints(2**63 - 1, -(2**63), 7, -7, -1)


def _run(nodes: list[NodeProto], feeds: Arrays, constants: Arrays | None = None) -> list[Array]:
    model = model_of(nodes, feeds, constants or {}, [], 20)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        return list(executable.run(feeds).values())


def _empty(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _places(*shape: int) -> Array:
    return np.zeros(shape, np.int64)


@pytest.mark.parametrize(
    ("op", "feeds", "attributes"),
    [
        ("Gather", {"x": _empty(0, 3), "i": _places(2)}, {}),
        ("GatherElements", {"x": _empty(0, 3), "i": _places(2, 3)}, {}),
        ("GatherND", {"x": _empty(2, 0), "i": _places(2, 2)}, {}),
        ("ScatterElements", {"x": _empty(0, 3), "i": _places(2, 3), "u": _empty(2, 3)}, {}),
        ("ScatterND", {"x": _empty(0, 3), "i": _places(2, 1), "u": _empty(2, 3)}, {}),
        ("GridSample", {"x": _empty(1, 1, 0, 2), "g": _empty(1, 2, 2, 2)}, {}),
        ("RoiAlign", {"x": _empty(0, 1, 4, 4), "r": _empty(1, 4), "b": _places(1)}, {}),
        ("MaxRoiPool", {"x": _empty(1, 1, 0, 4), "r": _empty(1, 5)}, {"pooled_shape": [2, 2]}),
    ],
)
def test_of_nothing_nothing_is_read(op: str, feeds: Arrays, attributes: dict[str, Any]) -> None:
    with pytest.raises(InvalidModelError, match="without elements"):
        _run([node(op, " ".join(feeds), **attributes)], feeds)


def test_nothing_cannot_be_resized() -> None:
    with pytest.raises(InvalidModelError, match="without elements"):
        _run([node("Resize", "x _ _ s")], {"x": _empty(1, 0)}, {"s": ints(1, 4)})


def test_nothing_read_from_nothing() -> None:
    nodes = [node("Gather", "x i"), node("Gather", "y j"), node("ScatterElements", "x k u")]
    feeds = {"x": _empty(0, 3), "i": _places(0), "y": _empty(0, 2), "j": _places(0, 5)}
    feeds |= {"k": _places(0, 3), "u": _empty(0, 3)}
    assert [array.shape for array in _run(nodes, feeds)] == [(0, 3), (0, 5, 2), (0, 3)]


def test_indices_far_outside_are_clamped_at_run_time() -> None:
    feeds = {"x": floats(1, 2, 3), "i": FAR, "k": FAR[:, None], "j": FAR[:2], "u": floats(8, 9)}
    nodes = [
        *(node("Gather", "x i"), node("GatherElements", "x i"), node("GatherND", "x k")),
        node("ScatterElements", "x j u"),
    ]
    *gathered, scattered = _run(nodes, feeds)
    for array in gathered:
        assert array.tolist() == [3, 1, 3, 1, 3]
    assert scattered.tolist() == [9, 2, 8]


def test_one_hot_of_indices_outside() -> None:
    constants = {"d": np.array(2), "none": np.array(0), "v": floats(0, 1)}
    hot, nothing = _run(
        [node("OneHot", "i d v"), node("OneHot", "i none v")], {"i": FAR}, constants
    )
    assert hot.tolist() == [[0, 0], [0, 0], [0, 0], [0, 0], [0, 1]]
    assert nothing.shape == (5, 0)


def test_one_hot_of_a_negative_depth() -> None:
    constants = {"d": np.array(-1), "v": floats(0, 1)}
    with pytest.raises(InvalidModelError, match=r"depth is \[-1\]"):
        _run([node("OneHot", "i d v")], {"i": FAR}, constants)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_samples_at_nan_and_at_infinity(mode: str) -> None:
    grid = floats(np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, 0, np.nan).reshape(1, 2, 2, 2)
    paddings = ("zeros", "border", "reflection")
    nodes = [node("GridSample", "x g", mode=mode, padding_mode=padding) for padding in paddings]
    for array in _run(nodes, {"x": numbers(1, 1, 2, 2), "g": grid}):
        assert array.shape == (1, 1, 2, 2)


def test_regions_far_outside() -> None:
    feeds = {
        "x": numbers(1, 1, 4, 4),
        "r": floats(np.nan, 1e30, np.inf, -1e30).reshape(1, 4),
        "b": ints(77),
        "q": floats(99, np.nan, 1e30, np.inf, -1e30).reshape(1, 5),
    }
    nodes = [node("RoiAlign", "x r b"), node("MaxRoiPool", "x q", pooled_shape=[2, 2])]
    assert [array.shape for array in _run(nodes, feeds)] == [(1, 1, 1, 1), (1, 1, 2, 2)]
