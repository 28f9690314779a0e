"""The example backend: what it takes, what it leaves, and the numbers."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

EXAMPLES = Path(__file__).parents[3] / "examples"
MODULE = EXAMPLES / "my_backend" / "my_backend.py"

needs_c_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler"
)


@pytest.fixture(scope="module", autouse=True)
def my_backend() -> ModuleType:
    spec = importlib.util.spec_from_file_location("my_backend", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    byoc_mlir.register_backend(module.LoopsBackend)
    return module


def chain() -> ModelProto:
    """Relu of a sum, a constant, a broadcast sum that must stay, and a second size of tensor."""
    b = GraphBuilder("chain", seed=7)
    x, y = b.input("x", [4, 6]), b.input("y", [4, 6])
    row, other = b.input("row", [6]), b.input("other", [3, 5])
    summed = b.relu(b.add(x, y))
    shifted = b.add(summed, b.normal((4, 6), 1.0, "shift"))
    b.output(b.op("Add", shifted, row), "out", [4, 6])
    b.output(b.relu(other), "out2", [3, 5])
    return b.build()


@needs_c_compiler
def test_chain_runs_in_c_and_the_broadcast_stays_on_the_host() -> None:
    model = chain()
    executable = byoc_mlir.compile(model, targets=("loops",))
    inputs = random_inputs(model, seed=1)
    assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-6)
    rows = {row.node: row for row in executable.report()}
    assert {node: rows[node].placement for node in ("/Add", "/Relu", "/Add_1", "/Relu_1")} == {
        "/Add": "loops",
        "/Relu": "loops",
        "/Add_1": "loops",
        "/Relu_1": "loops",
    }
    assert rows["/Relu"].composite == "loops.add_relu"
    assert rows["/Add_2"].placement == "host"
    assert "broadcast" in rows["/Add_2"].reason


@needs_c_compiler
def test_nan_stays_nan() -> None:
    model = chain()
    executable = byoc_mlir.compile(model, targets=("loops",))
    inputs = random_inputs(model)
    inputs["other"][0, :2] = np.nan, -np.inf
    assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-6)


@needs_c_compiler
def test_residual_network_with_the_sums_in_c() -> None:
    model = NETWORKS["resnet18"](image=32)
    executable = byoc_mlir.compile(model, targets=("loops",), fallback="allow")
    inputs = random_inputs(model)
    assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
    placed = executable.report().placed("loops")
    assert sum(row.op_type == "Add" for row in placed) == 8
    assert sum(row.op_type == "Relu" for row in placed) == 17


def test_package_declares_its_backend_as_entry_point(my_backend: ModuleType) -> None:
    project = tomllib.loads(MODULE.with_name("pyproject.toml").read_text())["project"]
    declared = project["entry-points"]["byoc_mlir.backends"]
    assert declared == {my_backend.LoopsBackend.name: "my_backend:LoopsBackend"}
    assert len(MODULE.read_text().splitlines()) <= 80


def test_quickstart_prints_the_answer_the_placement_and_the_time() -> None:
    command = [sys.executable, EXAMPLES / "quickstart.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "softmaxout_1: shape (1, 1000, 1, 1)" in result.stdout
    assert "Conv" in result.stdout
    assert "ms per run" in result.stdout
