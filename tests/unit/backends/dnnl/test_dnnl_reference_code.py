"""Absence of the library's reference code, for any instruction set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from dnnl_models import check, model, node
from onnx import ModelProto

from byoc_mlir.runtime.report import Report


def _check(built: ModelProto) -> Report:
    report = check(built)
    used = [one for row in report for one in row.implementation.split(" + ")]
    assert not any(one.startswith("ref") for one in used)
    return report


@pytest.mark.parametrize("slopes", [(24, 1, 1), (1,), (1, 1, 1)])
@pytest.mark.parametrize("groups", [1, 24])
def test_prelu_behind_convolutions(slopes: Sequence[int], groups: int) -> None:
    nodes = [
        node("Conv", "x w b", "c", pads=[1] * 4, group=groups),
        node("PRelu", "c s", "p"),
        node("Conv", "p v b", "d"),
        node("PRelu", "d s"),
    ]
    weights = {"w": (24, 24 // groups, 3, 3), "v": (24, 24, 1, 1), "b": (24,), "s": slopes}
    report = _check(model(nodes, {"x": (1, 24, 14, 13)}, weights))
    assert {row.placement for row in report} == {"dnnl"}
    assert len({row.region for row in report}) == 1


@pytest.mark.parametrize("mask", [(2, 6, 1, 30), (2, 1, 1, 30), (1, 1, 30, 30), (2, 6, 30, 1)])
def test_masks_of_attention(mask: Sequence[int]) -> None:
    """Checks that the host adds masks for which the library has no fast sum."""
    nodes = [
        node("MatMul", "q k", "s"),
        node("Add", "s m", "t"),
        node("Softmax", "t", "p", axis=-1),
        node("MatMul", "p q"),
    ]
    inputs = {"q": (2, 6, 30, 16), "k": (2, 6, 16, 30), "m": mask}
    report = _check(model(nodes, inputs))
    placed = {row.node: row.placement for row in report}
    assert placed["MatMul_s"] == placed["MatMul_y"] == "dnnl"


def test_an_op_without_other_code_stays_on_the_host() -> None:
    nodes = [node("Conv", "x w", "c"), node("Softmax", "c", "s", axis=2), node("Conv", "s w")]
    report = _check(model(nodes, {"x": (2, 3, 4, 5, 6)}, {"w": (3, 3, 1, 1, 1)}))
    (softmax,) = [row for row in report if row.node == "Softmax_s"]
    assert softmax.placement == "dnnl" or "only reference code for it here" in softmax.reason


@pytest.mark.values
@pytest.mark.parametrize("activation", ["Sigmoid", "Tanh", "Elu", "Abs", "Exp", "Mish"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool", "AveragePool", "MatMul"])
def test_post_ops(op: str, activation: str) -> None:
    attributes = {"kernel_shape": [3, 3]} if op.endswith("Pool") else {}
    operands = "x" if op.endswith("Pool") else "x w"
    nodes = [node(op, operands, "c", **attributes), node(activation, "c")]
    shape = (16, 7) if op == "MatMul" else (10, 10, 3, 3)
    weights = {} if op.endswith("Pool") else {"w": shape}
    _check(model(nodes, {"x": (2, 10, 9, 16)}, weights))


def test_a_post_op_that_makes_all_the_difference_runs_alone() -> None:
    """Checks a slow post-op in the middle of a chain."""
    nodes = [
        node("Conv", "x w", "c"),
        node("PRelu", "c s", "p"),
        node("Mul", "p f", "m"),
        node("Conv", "m w"),
    ]
    weights = {"w": (16, 16, 1, 1), "s": (16, 1, 1), "f": np.full((16, 1, 1), 0.5, np.float32)}
    _check(model(nodes, {"x": (1, 16, 20, 20)}, weights))
