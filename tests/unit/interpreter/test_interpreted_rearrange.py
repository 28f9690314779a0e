"""Ops that move elements: equal to ONNX Runtime's, also with bounds beyond the ends."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from agreement import check_node, floats, integers, run_interpreted
from helpers.models import node_model

from byoc_mlir.tensors import Array

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("step", [-7, -2, -1, 1, 3])
def test_slices(size: int, step: int) -> None:
    """Checks slices backwards from before the first element: ONNX's begin with it, ONNX's evaluator
    returns none.
    """
    x = floats(size)
    for start, end in product((LEAST, -9, -5, -1, 0, 1, 4, 7, MOST), repeat=2):
        if step > 0 or end != MOST:
            check_node("Slice", x, *map(integers, (start, end, 0, step)))


def test_slices_of_axes() -> None:
    x = floats(3, 4, 5)
    check_node("Slice", x, integers(1, 0), integers(3, 4), integers(-1, 0), integers(2, 1))
    check_node("Slice", x, integers(1, 0), integers(3, 4))
    check_node("Slice", x, opset=9, starts=[1, -9], ends=[9, -1], axes=[2, 0])
    check_node("Slice", x, opset=9, starts=[1], ends=[9])


@pytest.mark.parametrize("start", [None, -9, -2, 0, 1, 9])
@pytest.mark.parametrize("end", [None, -9, -1, 0, 2, 9])
def test_shapes(start: int | None, end: int | None) -> None:
    given = {name: value for name, value in (("start", start), ("end", end)) if value is not None}
    check_node("Shape", floats(2, 3, 4), **given)


@pytest.mark.parametrize(
    ("shape", "to", "others"),
    [
        ((2, 3, 4), (0, -1), {}),
        ((2, 3, 4), (4, 0, -1), {}),
        ((2, 3, 4), (24,), {}),
        ((1,), (), {}),
        ((), (1, 1), {}),
        ((0, 3), (3, 0), {"allowzero": 1}),
        ((0, 3), (0, 1, 3), {}),
        ((0, 3), (0, 3), {"allowzero": 0}),
    ],
)
def test_reshapes(shape: tuple[int, ...], to: tuple[int, ...], others: dict[str, Any]) -> None:
    check_node("Reshape", floats(*shape), integers(*to), **others)


def test_flat_matrices() -> None:
    for axis in range(-3, 4):
        check_node("Flatten", floats(2, 3, 4), axis=axis)
        check_node("Flatten", floats(2, 0, 4), axis=axis)
    check_node("Flatten", floats(), axis=0)


def test_axes_of_one() -> None:
    check_node("Squeeze", floats(1, 2, 1))
    check_node("Squeeze", floats(1, 2, 1), integers(-1, 0))
    check_node("Squeeze", floats(1, 2, 1), opset=11, axes=[2, 0])
    check_node("Unsqueeze", floats(2, 3), integers(3, 0))
    check_node("Unsqueeze", floats(2, 3), integers(-1, 1))
    check_node("Unsqueeze", floats(2, 3), opset=11, axes=[3, 0])
    check_node("Unsqueeze", floats(), integers(0))


def test_parts() -> None:
    check_node("Split", floats(2, 6), outputs=3, axis=1)
    check_node("Split", floats(2, 6), integers(1, 0, 5), outputs=3, axis=-1)
    check_node("Split", floats(2, 6), outputs=2, opset=11, axis=1, split=[2, 4])
    check_node("Split", floats(2, 7), outputs=3, opset=18, axis=1, num_outputs=3)


def test_stretches() -> None:
    check_node("Expand", floats(3, 1), integers(2, 1, 6))
    check_node("Expand", floats(3, 1), integers(1))
    check_node("Expand", floats(), integers(2, 2))
    check_node("Expand", floats(1), integers(0))
    check_node("Expand", np.array([True]), integers(3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pads(mode: str) -> None:
    x, pads = floats(3, 4), integers(1, 2, 0, 3)
    check_node("Pad", x, pads, mode=mode)
    check_node("Pad", x, opset=10, pads=[1, 2, 0, 3], mode=mode)
    check_node("Pad", x, integers(2, 1), None, integers(-1), opset=18, mode=mode)


def test_pads_with_a_number() -> None:
    x, number = floats(3, 4), np.array(2.5, np.float32)
    check_node("Pad", x, integers(1, -1, -2, 3), number)
    check_node("Pad", x, opset=10, pads=[1, -1, -2, 3], value=2.5)
    check_node("Pad", integers(1, 2), integers(1, 1), np.array(7))
    check_node("Pad", floats(0, 2), integers(1, 1, 0, 0), number)


def test_ranges() -> None:
    for numbers in ((0, 7, 2), (5, -3, -3), (3, 3, 1), (4, 0, 1)):
        check_node("Range", *(np.array(number) for number in numbers))
        check_node("Range", *(np.array(number, np.int32) for number in numbers))


@pytest.mark.parametrize(
    ("op_type", "operands", "others"),
    [
        ("Split", [floats(7)], {"outputs": 3}),
        ("Split", [floats(5)], {"outputs": 4, "opset": 18, "num_outputs": 4}),
        ("Split", [floats(5), integers(2, 2)], {"outputs": 2}),
        ("Squeeze", [floats(1, 2), integers(1)], {}),
        ("Squeeze", [floats(1, 2), integers()], {}),
        ("Unsqueeze", [floats(2), integers(0, 0)], {}),
        ("Unsqueeze", [floats(2), integers(5)], {}),
        ("Slice", [floats(2, 2), integers(0, 0), integers(1, 1), integers(0, -2)], {}),
        ("Slice", [floats(2), integers(0), integers(1), integers(0), integers(0)], {}),
        ("Slice", [floats(2), integers(1), integers(MOST), integers(0), integers(-1)], {}),
        ("Slice", [floats(2), integers(1), integers((1 << 31) - 1), integers(0), integers(-1)], {}),
        ("Slice", [floats(2), integers(0), integers(1), integers(1)], {}),
        ("Slice", [floats(2), integers(0), integers(1), integers(-2)], {}),
        ("Pad", [floats(2), integers(1, 1), None, integers(1)], {"opset": 18}),
        ("Flatten", [floats(2, 3)], {"axis": 3}),
        ("Flatten", [floats(2, 3)], {"axis": -3}),
        ("Split", [floats(2, 3)], {"axis": 2}),
        ("Reshape", [floats(2, 3), integers(5)], {}),
        ("Expand", [floats(2), integers(3)], {}),
        ("Pad", [floats(2), integers(2, 0)], {"mode": "reflect"}),
        ("Pad", [floats(2), integers(-3, 0)], {}),
        ("Pad", [floats(3), integers(-4, 2)], {}),
        ("Pad", [floats(3), integers(-2, -2)], {}),
        ("Concat", [floats(2, 3), floats(2, 2)], {"axis": 0}),
    ],
)
def test_what_is_not_possible(op_type: str, operands: list[Array], others: dict[str, Any]) -> None:
    model, feeds = node_model(op_type, operands, **others)
    with pytest.raises((ValueError, IndexError, NotImplementedError)):
        run_interpreted(model, feeds)
