"""Resizing: the modes that oneDNN takes, and their layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, model, node
from onnx import ModelProto

from byoc_mlir import compile as compile_model
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

IMAGE = (1, 16, 9, 12)


def _resize(
    shape: tuple[int, ...] = IMAGE,
    scales: tuple[float, ...] = (1, 1, 2, 2),
    before: bool = False,
    **attributes: Any,
) -> ModelProto:
    weights: dict[str, Any] = {"scales": np.array(scales, np.float32)}
    resize = node("Resize", "c  scales" if before else "x  scales", **attributes)
    resize.input.insert(1, "")
    if not before:
        return model([resize], {"x": shape}, weights)
    convolution = node("Conv", "x w", "c", pads=[1, 1, 1, 1])
    return model([convolution, resize], {"x": shape}, weights | {"w": (16, 16, 3, 3)})


ACCEPTED: dict[str, dict[str, Any]] = {
    "nearest twice": {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    | {"nearest_mode": "floor"},
    "nearest, centres": {"mode": "nearest"},
    "nearest, one third": {"mode": "nearest", "scales": (1, 1, 1 / 3, 1 / 3)},
    "linear twice": {"mode": "linear"},
    "linear, three by four": {"mode": "linear", "scales": (1, 1, 3, 4)},
    "linear, shrunk": {"mode": "linear", "scales": (1, 1, 2 / 3, 0.5)},
    "linear, one axis": {"mode": "linear", "scales": (1, 1, 1, 2)},
    "linear, a row": {"mode": "linear", "shape": (2, 16, 21), "scales": (1, 1, 2)},
    "linear, a volume": {"mode": "linear", "shape": (1, 8, 3, 4, 5), "scales": (1, 1, 2, 2, 2)},
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_resizing_is_offloaded(case: str) -> None:
    assert check(_resize(**ACCEPTED[case])).counts() == {"dnnl": 1}


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resizing_in_the_layout_of_a_convolution(mode: str) -> None:
    report = check(_resize(before=True, shape=(1, 16, 20, 20), mode=mode))
    assert report.counts() == {"dnnl": 2}
    assert len({row.region for row in report}) == 1
    assert not any(row.implementation.startswith("ref") for row in report)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("layout", ["plain", "channels_last", "blocked_8"])
def test_a_large_result_is_written_to_any_address(mode: str, layout: str) -> None:
    built = _resize(shape=(1, 16, 130, 130), before=True, mode=mode)
    inputs = random_inputs(built, seed=5)
    target = f"dnnl{{layout={layout}}}"
    shape = (1, 16, 260, 260)
    with compile_model(built, targets=(target,), threads=1) as executable:
        memory = np.empty(math.prod(shape) + 32, np.float32)
        start = -(memory.ctypes.data // 4) % 16 + 1  # one element after a multiple of 64 bytes
        out = memory[start : start + math.prod(shape)].reshape(shape)
        executable.run(inputs, out={"y": out})
        assert {row.placement for row in executable.report()} == {"dnnl"}
    assert_agrees({"y": out}, run_onnxruntime(built, inputs), tolerance=1e-5)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "cubic": ({"mode": "cubic"}, "cubic on"),
    "corners": (
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        "linear with align_corners",
    ),
    "ceil": (
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
        "nearest with asymmetric and ceil",
    ),
    "half down": ({"mode": "nearest", "scales": (1, 1, 1, 0.5)}, "oneDNN maps the centres"),
    "channels": ({"mode": "nearest", "scales": (1, 2, 2, 2)}, "the batch or the channels"),
    "antialias": ({"mode": "linear", "scales": (1, 1, 1, 0.5), "antialias": 1}, "oneDNN maps the"),
    "a matrix": (
        {"mode": "linear", "shape": (8, 9), "scales": (1, 2)},
        "linear on tensor<8x9",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_ways_stay_on_the_host(case: str) -> None:
    options, reason = REFUSED[case]
    (row,) = check(_resize(**options)).placed("host")
    assert reason in row.reason
