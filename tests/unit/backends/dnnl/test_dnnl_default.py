"""Nodes that oneDNN takes if the user named no targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from dnnl_models import model, node
from helpers.models import parsed
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

from byoc_mlir import compile as compile_model
from byoc_mlir.backends.dnnl.partition.host_regions import faster_on_host
from byoc_mlir.calibration import Calibration, write_calibration
from byoc_mlir.frontend.importer import import_model
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

PRODUCTS = model(
    [
        node("MatMul", "x w", "a"),
        node("Add", "a b", "c"),
        node("Gelu", "c", "d", approximate="tanh"),
        node("MatMul", "d v", "e"),
        node("Add", "e x", "f"),
        node("Softmax", "f", "y"),
    ],
    {"x": (33, 192)},
    {"w": (192, 512), "b": (512,), "v": (512, 192)},
)
CONVOLUTION = model(
    [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "y")],
    {"x": (1, 32, 40, 40)},
    {"w": (32, 32, 3, 3)},
)


def _placements(built: ModelProto, folder: Path) -> tuple[set[str], set[str]]:
    """Returns the placements of nodes and their reasons without measurements, and checks the
    outputs.
    """
    inputs, path = random_inputs(built, seed=3), folder / "calibration.json"
    write_calibration(Calibration(), path)
    with compile_model(built, threads=1, calibration=path) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(built, inputs), tolerance=1e-5)
        rows = list(executable.report())
    return {row.placement for row in rows}, {row.reason for row in rows}


def test_products_stay_on_the_host(tmp_path: Path) -> None:
    placements, reasons = _placements(PRODUCTS, tmp_path)
    assert placements == {"host"}
    assert any(reason.startswith("demoted: matmuls") for reason in reasons)


def test_convolutions_go_to_onednn(tmp_path: Path) -> None:
    placements, _ = _placements(CONVOLUTION, tmp_path)
    assert placements == {"dnnl"}


def test_the_same_calibration_give_the_same_figures(tmp_path: Path) -> None:
    """Checks that the figures of a region are in each of its rows, and in the JSON form."""
    first, second = (_times(CONVOLUTION, tmp_path) for _ in range(2))
    assert first == second
    assert all(one["obtained"] == "estimated" for one in first)
    assert all(one["backend_milliseconds"] and one["host_milliseconds"] for one in first)


def _times(built: ModelProto, folder: Path) -> list[dict[str, Any]]:
    write_calibration(Calibration(), folder / "calibration.json")
    with compile_model(built, threads=1, calibration=folder / "calibration.json") as executable:
        return [row["times"] for row in json.loads(executable.report().to_json())["nodes"]]


def _function(built: ModelProto) -> FuncOp:
    return next(op for op in import_model(built).module.ops if isinstance(op, FuncOp))


def test_pools_decide_for_onednn_beside_convolutions_only() -> None:
    """Checks that a pool keeps a convolution's layout, and does not bring an image into it."""
    window = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    sizes = {"x": (1, 32, 40, 40)}
    for op in ("AveragePool", "MaxPool"):
        alone = model([node(op, "x", "y", **window)], sizes, {})
        nodes = [node("Conv", "x w", "a"), node(op, "a", "y", **window)]
        follows = model(nodes, sizes, {"w": (32, 32, 3, 3)})
        assert faster_on_host(_function(alone)) is not None
        assert faster_on_host(_function(follows)) is None


def test_only_products_and_pools_in_f32_are_known_to_be_as_fast_on_the_host() -> None:
    """Checks that int8 GEMMs stay with oneDNN if the processor has units for them."""
    scale = {"scale": np.float32(0.1)}
    bytes_ = parsed("(float[4, 8] x) => (uint8[4, 8] y)", "y = QuantizeLinear (x, scale)", scale)
    assert faster_on_host(_function(bytes_)) is None
    assert faster_on_host(_function(PRODUCTS)) is not None
