"""Compiling, running and closing again and again leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak.py"


@pytest.mark.parametrize(
    ("model", "first", "cycles", "workers"),
    [("host", 20, 80, 1), ("dnnl", 10, 30, 1), ("symbolic", 4, 12, 1)],
)
def test_memory_does_not_grow(model: str, first: int, cycles: int, workers: int) -> None:
    arguments = ["--models", model, "--first", first, "--cycles", cycles]
    arguments += ["--workers", workers, "--runs", 2000, "--limit", 2.5]
    done = subprocess.run(
        [sys.executable, SOAK, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


GROWTH = """
import sys
import numpy as np
import byoc_mlir

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

x = {"x": np.ones((1, 1024), np.float32)}
options = {"threads": 1, "cache": False}
byoc_mlir.compile(sys.argv[1], **options).run(x)  # imports what it needs
before = resident()
executable = byoc_mlir.compile(sys.argv[2], **options)
executable.run(x)
print(resident() - before)
"""


def layers(path: Path, count: int) -> int:
    """Saves a model, and gives the bytes of its weights."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1024, 1024), np.float32) for _ in range(count)]
    names = ["x", *(f"h{n}" for n in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [names[n], f"w{n}"], [names[n + 1]]) for n in range(count)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1024]) for name in "xy"]
    initializers = [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(arrays)]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], initializers)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return sum(array.nbytes for array in arrays)


def test_a_compiled_model_holds_twice_its_weights_at_most(tmp_path: Path) -> None:
    """Neither the file as it was read, nor weights on their way to what the code reads."""
    layers(tmp_path / "small.onnx", 1)
    size = layers(tmp_path / "large.onnx", 24)
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, tmp_path / "small.onnx", tmp_path / "large.onnx"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert int(done.stdout) <= 2 * size + (8 << 20)
