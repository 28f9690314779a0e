"""New input shapes: the results are right, and no weight is folded again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers.models import parsed
from onnx import helper, numpy_helper

import byoc_mlir
from byoc_mlir.lowering.llvm_ir import parts
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.program import Array, ObjectCode
from byoc_mlir.transforms import fold_batch_norm

IMAGE = (3, 20, 20)

CHANNELS = 6
"""Number of channels, no multiple of any vector: convolutions are loops on every processor."""


def network(batch: int | str) -> onnx.ModelProto:
    """Returns convolutions and pools.

    A model with a symbolic batch is compiled for each batch. Its height is symbolic, too, and an
    average depends on the part of a window that lies within the image.
    """
    rng = np.random.default_rng(3)
    shapes = {"w0": (CHANNELS, 3, 3, 3), "w1": (CHANNELS, CHANNELS, 3, 3)}
    weights = {name: rng.normal(0, 0.1, s).astype(np.float32) for name, s in shapes.items()}
    height = 20 if isinstance(batch, int) else "H"
    halved = "kernel_shape = [2, 2], strides = [2, 2]"
    nodes = f"""
        a = Conv <pads = [1, 1, 1, 1]> (x, w0)
        b = Relu (a)
        c = MaxPool <{halved}> (b)
        d = Conv (c, w1)
        y = AveragePool <auto_pad = "SAME_UPPER", {halved}> (d)
    """
    return parsed(f"(float[{batch}, 3, {height}, 20] x) => (y)", nodes, weights)


def batch_of(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    return {"x": rng.normal(size=(size, *IMAGE)).astype(np.float32)}


def run_onnx(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [np.asarray(output) for output in session.run(None, inputs)]


def check(executable: Executable, size: int) -> None:
    (expected,) = run_onnx(network("N"), batch_of(size))
    np.testing.assert_allclose(executable.run(batch_of(size))["y"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.values
@pytest.mark.parametrize("targets", [(), ("dnnl",)])
@pytest.mark.parametrize(
    ("threads", "sizes"),
    [
        pytest.param(1, (16, 32, 1), id="1-thread"),
        pytest.param(2, (240, 300), id="2-threads, work for both"),
    ],
)
def test_other_batches(targets: tuple[str, ...], threads: int, sizes: tuple[int, ...]) -> None:
    with byoc_mlir.compile(network("N"), targets=targets, threads=threads) as executable:
        for size in sizes:
            check(executable, size)


def test_another_batch_folds_no_weight_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("N")
    pool = model.graph.node.pop()
    model.graph.node[-1].output[0] = "before"
    statistics = [f"statistics{number}" for number in range(4)]
    node = helper.make_node("BatchNormalization", ["before", *statistics], ["d"])
    model.graph.node.extend([node, pool])
    for seed, name in enumerate(statistics):
        values = np.random.default_rng(seed).uniform(0.5, 1.5, CHANNELS).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    scaled: list[int] = []
    scale = fold_batch_norm.scaled

    def recorded(weight: Array, factors: Array, groups: int | None) -> Array:
        scaled.append(weight.size)
        return scale(weight, factors, groups)

    monkeypatch.setattr(fold_batch_norm, "scaled", recorded)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        first = executable.run(batch_of(2))["y"]
        second = executable.run(batch_of(3))["y"]
    assert len(scaled) == 1
    (expected,) = run_onnx(model, batch_of(3))
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-4)
    assert first.shape[0] == 2


def test_a_small_model_of_fixed_shapes_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_OPS", 1_000_000)
    with byoc_mlir.compile(network(2), targets=(), threads=1) as executable:
        check(executable, 2)
        assert isinstance(executable.program.code, ObjectCode)
        assert executable.program.code.kernels == ()


def test_the_program_of_another_shape_is_exported(tmp_path: Path) -> None:
    with byoc_mlir.compile(network("N"), targets=(), threads=1) as executable:
        check(executable, 16)
        executable.export_library(tmp_path / "model.so", shapes={"x": (32, *IMAGE)})
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        check(loaded, 32)


_MANY_ROWS = 4096


@pytest.mark.parametrize("first", [1, 3, _MANY_ROWS])
def test_the_first_rows_do_not_choose_the_threads(tmp_path: Path, first: int) -> None:
    """Checks that loops over blocks of rows share many rows, and not the blocks of a few rows."""
    weights = np.ones((64, 64), np.float32)
    model = parsed("(float[n, 64] x) => (float[n, 64] y)", "y = MatMul (x, w)", {"w": weights})
    with byoc_mlir.compile(
        model, threads=2, targets=(), cache=False, dump_ir=tmp_path
    ) as executable:
        executable.run({"x": np.ones((first, 64), np.float32)})
        executable.wait()
    dumps = [path.read_text() for path in tmp_path.rglob("*.mlir")]
    fewest = {int(n) for dump in dumps for n in re.findall(r"fewest_iterations = (\d+)", dump)}
    assert fewest
    assert all(2 <= one <= _MANY_ROWS // 256 for one in fewest), fewest
