"""Interpreter's reductions: axes as attributes and operands, and of no elements."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check_node, floats, integers, run_interpreted
from helpers.models import node_model

OPS = ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin")


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("axes", [[0], [1, -1], [-2], [0, 1, 2], []])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(op_type: str, axes: list[int], keepdims: int) -> None:
    x = floats(2, 3, 4)
    check_node(op_type, x, integers(*axes), opset=18, keepdims=keepdims)
    if axes:
        before = 12 if op_type == "ReduceSum" else 17
        check_node(op_type, x, opset=before, axes=axes, keepdims=keepdims)


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes(op_type: str, noop: int) -> None:
    for x in (floats(2, 3), floats()):
        check_node(op_type, x, opset=18, noop_with_empty_axes=noop)
        check_node(op_type, x, integers(), opset=18, noop_with_empty_axes=noop)


@pytest.mark.parametrize("op_type", sorted({*OPS} - {"ReduceMean"}))
@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_integers(op_type: str, kind: type) -> None:
    x = np.array([[-3, 2, 5], [7, -1, -5]], kind)
    check_node(op_type, x, integers(1), opset=18)


WANTED = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf}


@pytest.mark.parametrize("op_type", OPS)
def test_nothing(op_type: str) -> None:
    """Checks reductions of no elements against docs/semantics.md."""
    model, feeds = node_model(op_type, [floats(2, 0), integers(1)], opset=18)
    found = run_interpreted(model, feeds)["y0"]
    want = np.full((2, 1), WANTED.get(op_type, np.nan), np.float32)
    assert np.array_equal(found, want, equal_nan=True)
    x = np.zeros((2, 0), np.int64)
    if op_type in ("ReduceMax", "ReduceMin"):
        model, feeds = node_model(op_type, [x, integers(1)], opset=18)
        end = np.iinfo(np.int64).min if op_type == "ReduceMax" else np.iinfo(np.int64).max
        assert (run_interpreted(model, feeds)["y0"] == end).all()
