"""Memory: compiling, running and closing repeatedly leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers.models import model_of, node
from onnx import helper
from process_models import run_script

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak.py"


@pytest.mark.parametrize(
    ("model", "first", "cycles", "workers"),
    [("host", 10, 40, 1), ("dnnl", 10, 30, 1), ("symbolic", 4, 12, 1)],
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


GARBAGE = """
import gc
import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs

model = NETWORKS["mlp"]()
inputs = random_inputs(model)

def cycle():
    with byoc_mlir.compile(model, threads=1, cache=False) as executable:
        executable.run(inputs)

for _ in range(3):
    cycle()
gc.collect()
cycle()
gc.set_debug(gc.DEBUG_SAVEALL)
gc.collect()
print(sum(type(one).__name__ == "_FuncPtr" for one in gc.garbage), len(gc.garbage))
"""


def test_what_is_closed_leaves_no_garbage() -> None:
    """Checks for garbage; llvmlite creates three types each time, of six objects each, and a spare
    one.
    """
    functions, objects = map(int, run_script(GARBAGE, timeout=300).split())
    assert (functions, objects <= 24) == (0, True), objects


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


def chain(path: Path, weights: list[str]) -> int:
    """Saves a chain of matmuls with matrices of these names, and returns the matrices' bytes."""
    rng, count = np.random.default_rng(0), len(weights)
    arrays = {name: rng.standard_normal((1024, 1024), np.float32) for name in sorted(set(weights))}
    names = ["x", *(f"h{n}" for n in range(1, count)), "y"]
    nodes = [
        node(("MatMul", "Gemm")[n % 2], f"{names[n]} {weight}", names[n + 1])
        for n, weight in enumerate(weights)
    ]
    onnx.save(model_of(nodes, {"x": [1, 1024]}, arrays, opset=17), path)
    return sum(array.nbytes for array in arrays.values())


PEAK = """
import sys
import tracemalloc
import numpy as np
import byoc_mlir
from byoc_mlir.compiler.calibration import process_calibration
from byoc_mlir.kernels.costs import ConvolutionCalibration

x = {"x": np.ones((1, 1024), sys.argv[3])}
byoc_mlir.compile(sys.argv[1], threads=1, cache=False).run(x)  # imports what it needs
process_calibration().view(ConvolutionCalibration.of)  # once a machine
tracemalloc.start()
byoc_mlir.compile(sys.argv[2], threads=1, cache=False).run(x)
print(tracemalloc.get_traced_memory()[1])
"""


def test_a_matrix_that_many_nodes_read_is_copied_once(tmp_path: Path) -> None:
    """Checks the peak while the model is compiled: the file, the matrix as read, transposed, in
    panels.
    """
    chain(tmp_path / "once.onnx", ["w"])
    size = chain(tmp_path / "repeated.onnx", ["w"] * 24)
    arguments = (str(tmp_path / "once.onnx"), str(tmp_path / "repeated.onnx"), "float32")
    assert int(run_script(PEAK, timeout=300, arguments=arguments)) <= 6 * size


def turned(path: Path, count: int, dtype: type[np.generic]) -> int:
    """Saves a chain of matmuls whose operands B are stored transposed, and returns the matrices'
    bytes; 8-bit ones are int8 GEMMs.
    """
    rng, names = np.random.default_rng(0), ["x", *(f"h{n}" for n in range(1, count)), "y"]
    arrays = {f"w{n}": rng.integers(-99, 99, (1024, 1024)).astype(dtype) for n in range(count)}
    nodes: list[onnx.NodeProto] = []
    for (before, after), weight in zip(pairwise(names), arrays, strict=True):
        factors = [before, weight]
        if dtype == np.int8:
            nodes.append(helper.make_node("QuantizeLinear", [before, "s"], [f"{after}_q"]))
            codes, factors = (f"{after}_q", weight), [f"{after}_d", f"{weight}_d"]
            nodes += [
                helper.make_node("DequantizeLinear", [code, "s"], [factor])
                for code, factor in zip(codes, factors, strict=True)
            ]
        nodes.append(helper.make_node("Gemm", factors, [after], transB=1))
    x = np.zeros((1, 1024), np.float16 if dtype == np.float16 else np.float32)
    constants = {"s": np.float32(0.02), **arrays}
    onnx.save(model_of(nodes, {"x": x}, constants, opset=17), path)
    return sum(array.nbytes for array in arrays.values())


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1.5), (np.float16, 2.6), (np.int8, 2.6)])
def test_weights_are_let_go_one_by_one(
    dtype: type[np.generic], most: float, tmp_path: Path
) -> None:
    """Checks that weights are freed as soon as they are packed, or converted to `f32` and packed.

    There is never a second copy of all of them, only of a few. If the processor multiplies packed
    2-byte groups, packed int8 weights take twice their size: 2.2 in all, 1.7 elsewhere.
    """
    turned(tmp_path / "small.onnx", 1, dtype)
    size = turned(tmp_path / "large.onnx", 24, dtype)
    given = "float16" if dtype == np.float16 else "float32"
    arguments = (str(tmp_path / "small.onnx"), str(tmp_path / "large.onnx"), given)
    assert int(run_script(PEAK, timeout=300, arguments=arguments)) <= most * size


def test_a_compiled_model_holds_twice_its_weights_at_most(tmp_path: Path) -> None:
    """Checks that neither the file nor intermediate forms of the weights stay in memory."""
    chain(tmp_path / "small.onnx", ["w"])
    size = chain(tmp_path / "large.onnx", [f"w{n}" for n in range(24)])
    files = (str(tmp_path / "small.onnx"), str(tmp_path / "large.onnx"))
    assert int(run_script(GROWTH, timeout=300, arguments=files)) <= 2 * size + (8 << 20)


ANONYMOUS = """
import sys
import numpy as np
import byoc_mlir

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) << 10

folder, targets, *models = sys.argv[1:]
x = {"x": np.ones((1, 1024), np.float32)}
options = {"threads": 1, "cache": folder, "targets": targets.split()}
byoc_mlir.compile(models[0], **options).run(x)  # imports what it needs
before = anonymous()
executable = byoc_mlir.compile(models[1], **options)
executable.run(x)
print(anonymous() - before)
"""


@pytest.mark.parametrize(("targets", "copies"), [("", 0), ("dnnl", 1)])
def test_what_was_put_into_the_cache_is_mapped(targets: str, copies: int, tmp_path: Path) -> None:
    """Checks that weights stay in the file; memory has at most a library's copy in another
    layout."""
    chain(tmp_path / "small.onnx", ["w"])
    size = chain(tmp_path / "large.onnx", [f"w{n}" for n in range(24)])
    files = (str(tmp_path / "small.onnx"), str(tmp_path / "large.onnx"))
    grown = run_script(ANONYMOUS, timeout=300, arguments=(str(tmp_path / "cache"), targets, *files))
    assert int(grown) <= copies * size + (24 << 20)
