"""Interpreter's normalisations: against ONNX Runtime, and against numpy in f64."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check_node, floats, run_interpreted
from helpers.models import node_model


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 1, 7), (2, 3, 4, 5), (300, 200), (2, 40_000)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_layer_normalization(shape: tuple[int, ...], has_bias: bool) -> None:
    for axis in range(-len(shape), len(shape)):
        tail = shape[axis:]
        operands = [floats(*shape), floats(*tail, seed=1)]
        operands += [floats(*tail, seed=2)] if has_bias else []
        check_node("LayerNormalization", *operands, axis=axis, epsilon=1e-3)


def test_scale_that_is_stretched() -> None:
    check_node("LayerNormalization", floats(2, 3, 4), floats(4, seed=1), floats(4), axis=1)
    check_node("LayerNormalization", floats(2, 3, 4), floats(1, seed=1), floats(1), axis=-1)


def test_rows_far_from_zero() -> None:
    x = floats(4, 1000) + np.float32(1000)
    model, feeds = node_model("LayerNormalization", [x, np.ones(1000, np.float32)])
    found = run_interpreted(model, feeds)["y0"]
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert np.abs(found - want).max() < 1e-3


@pytest.mark.parametrize("shape", [(1, 1, 4), (2, 3, 5), (2, 3, 4, 5), (1, 70, 30, 30)])
@pytest.mark.parametrize("opset", [7, 17, 22])
def test_instance_normalization(shape: tuple[int, ...], opset: int) -> None:
    scale, bias = floats(shape[1], seed=1), floats(shape[1], seed=2)
    check_node("InstanceNormalization", floats(*shape), scale, bias, opset=opset, epsilon=1e-2)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (0, 3, 2), (2, 3, 4, 5), (1, 70, 30, 30)])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(shape: tuple[int, ...], opset: int) -> None:
    scale, bias, mean = (floats(shape[1], seed=seed) for seed in (1, 2, 3))
    variance = np.abs(floats(shape[1], seed=4))
    check_node("BatchNormalization", floats(*shape), scale, bias, mean, variance, opset=opset)


@pytest.mark.parametrize("op_type", ["InstanceNormalization", "BatchNormalization"])
def test_scales_of_other_channels(op_type: str) -> None:
    operands = [floats(2, 3, 4), *[np.ones(1, np.float32)] * 4]
    count = 3 if op_type == "InstanceNormalization" else 5
    model, feeds = node_model(op_type, operands[:count])
    with pytest.raises(NotImplementedError):
        run_interpreted(model, feeds)


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_that_are_not_there(axis: int) -> None:
    model, feeds = node_model("LayerNormalization", [floats(2, 3), floats(3)], axis=axis)
    with pytest.raises(NotImplementedError):
        run_interpreted(model, feeds)
