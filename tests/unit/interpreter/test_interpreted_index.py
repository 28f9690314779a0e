"""Gathers and scatters: equal to ONNX Runtime's, at negative positions, too."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check_node, floats, integers, run_interpreted
from helpers.models import node_model

from byoc_mlir.tensors import Array

RNG = np.random.default_rng(0)


def _places(size: int, *shape: int) -> Array:
    return RNG.integers(-size, size, shape)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (0,)])
def test_gather(shape: tuple[int, ...]) -> None:
    for axis in (0, 1, -1):
        check_node("Gather", floats(4, 4, 4), _places(4, *shape), axis=axis)
    check_node("Gather", floats(4).astype(np.int64), _places(4, *shape).astype(np.int32))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather_elements(axis: int) -> None:
    check_node("GatherElements", floats(4, 4, 4), _places(4, 4, 4, 4), axis=axis)
    check_node("GatherElements", floats(4, 4, 4), _places(4, 2, 3, 1), axis=axis)


@pytest.mark.parametrize(
    ("indices", "batch_dims"), [((3, 1), 0), ((2, 3, 2), 0), ((2, 2), 1), ((2, 4, 3), 0),
                                ((2, 3, 1), 1), ((2, 3, 4, 1), 2), ((2, 1), 0)]
)  # fmt: skip
def test_gather_nd(indices: tuple[int, ...], batch_dims: int) -> None:
    check_node("GatherND", floats(2, 3, 4), _places(2, *indices), batch_dims=batch_dims)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(reduction: str, axis: int) -> None:
    operands = floats(5, 5), _places(5, 3, 4), floats(3, 4)
    if reduction == "none":  # of several at a place it is open which one stays
        operands = floats(5, 5), np.array([[0, 1], [2, -1]]), floats(2, 2)
    check_node("ScatterElements", *operands, opset=18, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    indices = np.array([[0], [3], [-1]]) if reduction == "none" else _places(4, 5, 1)
    updates = floats(len(indices), 3)
    check_node("ScatterND", floats(4 if reduction != "none" else 5, 3), indices, updates,
               opset=18, reduction=reduction)  # fmt: skip
    check_node("ScatterND", floats(4, 3), np.array([[0, 1], [2, -1]]), floats(2), opset=18)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int32])
def test_top_k(largest: int, kind: type) -> None:
    x = RNG.integers(-3, 3, (3, 6, 4)).astype(kind)  # many are equal
    for axis in (0, 1, -1):
        for count in (0, 1, 3):
            operands = x, integers(count)
            check_node("TopK", *operands, outputs=2, axis=axis, largest=largest)


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [
        ("Gather", [floats(3), integers(3)]),
        ("Gather", [floats(3), integers(-4)]),
        ("GatherElements", [floats(3), integers(3)]),
        ("GatherND", [floats(3), integers(3)]),
        ("ScatterElements", [floats(3), integers(3), floats(1)]),
        ("ScatterElements", [floats(3), integers(1, 2), floats(1)]),
        ("ScatterND", [floats(3), integers(3).reshape(1, 1), floats(1)]),
        ("ScatterND", [floats(3, 2), integers(1).reshape(1, 1), floats(1)]),
        ("TopK", [floats(3), integers(4)]),
    ],
)
def test_places_that_are_not_there(op_type: str, operands: list[Array]) -> None:
    model, feeds = node_model(op_type, operands, outputs=2 if op_type == "TopK" else 1)
    with pytest.raises((IndexError, NotImplementedError)):
        run_interpreted(model, feeds)


def test_data_stay_as_they_are() -> None:
    x = floats(4, 3)
    before = x.copy()
    model, feeds = node_model("ScatterND", [x, np.array([[0], [1]]), floats(2, 3)])
    run_interpreted(model, feeds)
    assert np.array_equal(x, before)
