"""Interpreter's activations: against numpy in f64, and against ONNX Runtime at the edges."""

from __future__ import annotations

from math import erf, exp
from typing import Any

import numpy as np
import pytest
from agreement import check_node, floats, run_interpreted
from helpers.models import node_model

from byoc_mlir.tensors import Array

PLACES = np.concatenate(
    [
        np.linspace(-6, 6, 40_001),  # several blocks
        [0.0, -0.0, 1e-30, -1e-30, 1e-6, 100, -100, np.inf, -np.inf, np.nan],
    ]
).astype(np.float32)


def _run(op_type: str, x: Array, **attributes: Any) -> Array:
    model, feeds = node_model(op_type, [x], **attributes)
    return run_interpreted(model, feeds)["y0"]


def test_error_function_is_right_to_the_last_bits() -> None:
    found = _run("Erf", PLACES).astype(np.float64)
    want = np.array([erf(value) for value in PLACES.tolist()])
    assert np.array_equal(np.isnan(found), np.isnan(want))
    error = np.abs(found - want) / np.maximum(np.abs(want), 1e-38)
    assert np.nanmax(error) < 3e-7


def test_sigmoid_of_small_shares() -> None:
    x = np.array([-80, -50, -20, -1, 0, 1, 20, 200, -200, np.inf, -np.inf], np.float32)
    want = np.array([1 / (1 + exp(-value)) if value > -700 else 0 for value in x.tolist()])
    assert np.allclose(_run("Sigmoid", x), want, rtol=1e-6, atol=1e-38)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    x = PLACES[:40_001]
    inner = np.sqrt(2 / np.pi) * (x.astype(np.float64) + 0.044715 * x.astype(np.float64) ** 3)
    exact = np.array([erf(value / 2**0.5) for value in x.tolist()])
    want = 0.5 * x * (1 + (exact if approximate == "none" else np.tanh(inner)))
    found = _run("Gelu", x, opset=20, approximate=approximate)
    assert np.abs(found - want).max() < 1e-6


def test_error_function_ends_at_one() -> None:
    x = np.array([3.95, 4, 10, 100, 3.4e38, np.inf], np.float32)
    assert (_run("Erf", x) == 1).all()
    assert (_run("Erf", -x) == -1).all()


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_large_numbers(approximate: str) -> None:
    x = np.array([10, 100, 1e12, 3.4e38], np.float32)
    assert (_run("Gelu", x, opset=20, approximate=approximate) == x).all()
    assert (_run("Gelu", -x, opset=20, approximate=approximate) == 0).all()


SHAPES = [(5,), (3, 4, 5), (7, 1), (2, 5000), (700, 40), (3, 0, 2)]


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("shape", SHAPES)
def test_shares(op_type: str, opset: int, shape: tuple[int, ...]) -> None:
    for axis in range(-len(shape), len(shape)):
        check_node(op_type, 10 * floats(*shape), opset=opset, axis=axis)


def test_shares_far_apart() -> None:
    x = np.array([[0, 1000, -1000], [-200, -300, -100], [88, 89, 90]], np.float32)
    check_node("Softmax", x)
    check_node("LogSoftmax", x)


def test_what_is_masked_has_no_share() -> None:
    x = np.array([[0, -np.inf, 1], [-np.inf, -np.inf, 2]], np.float32)
    assert np.array_equal(_run("Softmax", x)[1], [0, 0, 1])
    assert np.allclose(_run("Softmax", x).sum(axis=1), 1)
    assert np.isnan(_run("Softmax", np.full((1, 2), -np.inf, np.float32))).all()


def test_operands_that_do_not_lie_in_order() -> None:
    x = floats(40, 30).T
    assert np.array_equal(_run("Erf", x), _run("Erf", np.ascontiguousarray(x)))
    assert np.array_equal(_run("Softmax", x), _run("Softmax", np.ascontiguousarray(x)))


@pytest.mark.parametrize("op_type", ["Relu", "HardSwish", "Sigmoid", "Erf"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 4), (3, 7)])
def test_shapes(op_type: str, shape: tuple[int, ...]) -> None:
    check_node(op_type, floats(*shape))


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(("opset", "attributes"), [(11, {}), (11, {"axis": -2}), (13, {"axis": 1})])
def test_axes_that_are_not_there(op_type: str, opset: int, attributes: dict[str, Any]) -> None:
    model, feeds = node_model(op_type, [floats(3)], opset=opset, **attributes)
    with pytest.raises((ValueError, NotImplementedError)):
        run_interpreted(model, feeds)
