"""Subgraphs of the tutorials on backends, their results, and their runs once saved."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

Outputs = dict[str, np.ndarray[Any, Any]]

LOAD_AND_RUN = """
import json, sys
import numpy as np
import byoc_mlir
with byoc_mlir.load(sys.argv[1]) as executable:
    np.savez(sys.argv[3], **executable.run(dict(np.load(sys.argv[2]))))
    compiler = [name for name in ("onnx", "xdsl", "llvmlite") if name in sys.modules]
    sources = {region: executable.get_source(region) for region in executable.program.sources}
    print(json.dumps([compiler, executable.report().counts(), sources]))
"""


def add_sub_mul() -> ModelProto:
    """Returns `((x0 + x1) - x2) * x3` of `[10, 10]` tensors: no weights."""
    b = GraphBuilder("add_sub_mul", seed=1)
    x = [b.input(f"x{i}", [10, 10]) for i in range(4)]
    b.output(b.op("Mul", b.op("Sub", b.op("Add", x[0], x[1]), x[2]), x[3]), "out", [10, 10])
    return b.build()


def relu_of_sums() -> ModelProto:
    """Returns a model with two results, one of which is used inside as well, and a constant
    operand.
    """
    b = GraphBuilder("relu_of_sums", seed=2)
    x = b.input("x", [3, 7])
    total = b.add(x, b.normal((3, 7), 1.0, "shift"))
    b.output(b.op("Mul", b.relu(total), x), "product", [3, 7])
    b.output(total, "total", [3, 7])
    return b.build()


def conv_add_relu() -> ModelProto:
    """Returns two rounds of `relu(conv2d(x) + y)`; `y` is a tensor, so the addition is no bias."""
    b = GraphBuilder("conv_add_relu", seed=3)
    x, y, z = (
        b.input(name, [1, 32, size, size]) for name, size in (("x", 14), ("y", 12), ("z", 12))
    )
    first = b.relu(b.add(b.conv(x, 32, 3, padding=0, bias=False), y))
    second = b.relu(b.add(b.conv(first, 32, 1, bias=False), z))
    b.output(second, "out", [1, 32, 12, 12])
    return b.build()


def conv_bias_relu_pool_dense() -> ModelProto:
    """Returns biased convolutions of all kinds of windows, a pool, a dense layer and a softmax."""
    b = GraphBuilder("conv_bias_relu_pool_dense", seed=4)
    x = b.input("x", [2, 3, 16, 15])
    y = b.relu(b.conv(x, 8, (3, 5), stride=2, padding=(1, 2)))
    y = b.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = b.relu(b.conv(y, 6, 1, bias=False))
    y = b.op("Flatten", b.op("GlobalAveragePool", y))
    y = b.op("Gemm", y, b.normal((5, 6), 0.4), b.normal((5,), 0.1, "bias"), transB=1)
    b.output(b.op("Softmax", b.relu(y), axis=-1), "out", [2, 5])
    return b.build()


def compile_and_check(
    model: ModelProto, *targets: str, tolerance: float = 1e-5, **options: Any
) -> Executable:
    """Returns the executable, after its outputs were compared with ONNX Runtime's, twice."""
    options = {"fallback": "allow"} | options
    executable = byoc_mlir.compile(model, targets=targets, **options)
    for seed in (0, 1):
        inputs = random_inputs(model, seed=seed)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), tolerance)
    return executable


def check_in_new_process(executable: Executable, model: ModelProto, folder: Path) -> None:
    """Saves, and asserts that a new process returns the same bits without importing the
    compiler."""
    inputs = random_inputs(model, seed=5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "region .* runs in Python")
        executable.export_library(folder / "model.so")
    np.savez(folder / "inputs.npz", allow_pickle=False, **inputs)
    files = [folder / name for name in ("model.so", "inputs.npz", "outputs.npz")]
    printed = run_python(LOAD_AND_RUN, *map(str, files))
    compiler, counts, sources = json.loads(printed)
    assert compiler == []
    assert sources == executable.program.sources
    assert counts == executable.report().counts()
    found = dict(np.load(folder / "outputs.npz"))
    for name, array in executable.run(inputs).items():
        np.testing.assert_array_equal(found[name], array)


def export_arithmetic(target: str, path: str) -> None:
    """Compiles for a target and saves."""
    byoc_mlir.compile(add_sub_mul(), (target,), fallback="forbid").export_library(path)


def run_python(code: str, *arguments: str) -> str:
    """Returns the output of a program in a new process."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
