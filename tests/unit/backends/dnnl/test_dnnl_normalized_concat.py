"""Batch norms that read the parts of a concatenation in place."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from bf16_models import assert_close, dense_blocks
from dnnl_models import check, model, node
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.runtime.report import Report
from byoc_mlir.testing.isa import call_at, distinct_levels
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

NAME = "loop:normalized_concat"


def _is_fused(report: Report) -> bool:
    return any(NAME in row.implementation for row in report.placed("dnnl"))


def _dense_block(batch: int, growth: int, *, relu: bool = True) -> ModelProto:
    """Returns a block whose batch norms read all earlier results."""
    net = GraphBuilder("dense_block", seed=0)
    x = net.relu(net.conv(net.input("x", [batch, 3, 9, 13]), 32, 3))
    for _ in range(3):
        y = net.batch_norm(x)
        y = net.conv(net.relu(y) if relu else net.op("Tanh", y), 32, 1)
        x = net.concat(x, net.conv(y, growth, 3, bias=False))
    y = net.conv(net.relu(net.batch_norm(x)), 16, 1)
    net.output(y, "y", [batch, 16, 9, 13])
    return net.build()


@pytest.mark.pairs
@pytest.mark.parametrize("layout", ["channels_last", "blocked_8"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_dense_blocks(layout: str, batch: int, relu: bool, threads: int) -> None:
    built = _dense_block(batch, 16, relu=relu)
    report = check(built, threads=threads, target=f"dnnl{{layout={layout}}}", prune="off")
    assert _is_fused(report) == (layout == "channels_last" or batch == 1)


def test_row_major_tensors_are_copied() -> None:
    report = check(_dense_block(1, 16), target="dnnl{layout=plain}", prune="off")
    assert not _is_fused(report)


@pytest.mark.parametrize("growth", [12, 10])
def test_few_channels(growth: int) -> None:
    """Checks the number of new channels: there are vectors for multiples of 4, but not of 2."""
    built = _dense_block(1, growth)
    report = check(built, target="dnnl{layout=channels_last}", prune="off")
    assert _is_fused(report) == (growth == 12)


def _nodes() -> list[NodeProto]:
    return [
        node("Conv", "x v", "a", group=16),
        node("Conv", "x v", "b", group=16),
        node("Concat", "a b", "c", axis=1),
        node("BatchNormalization", "c s t m n", "d"),
        node("Relu", "d", "e"),
        node("Conv", "e w"),
    ]


_WEIGHTS = {
    "v": np.ones((16, 1, 1, 1), np.float32),
    "w": np.full((4, 32, 1, 1), 0.5, np.float32),
    "s": np.linspace(-2, 2, 32, dtype=np.float32),
    "t": np.linspace(1, -1, 32, dtype=np.float32),
    "m": np.linspace(-1, 1, 32, dtype=np.float32),
    "n": np.linspace(0.5, 4, 32, dtype=np.float32),
}


def test_what_is_not_finite_stays_so() -> None:
    built = model(_nodes(), {"x": (1, 16, 4, 4)}, _WEIGHTS)
    x = random_inputs(built)["x"]
    x[0, 3, 1, 1], x[0, 5, 2, 2], x[0, 9, 3, 0] = np.nan, np.inf, -np.inf
    options = {"targets": ("dnnl{layout=channels_last}",), "prune": "off"}
    with byoc_mlir.compile(built, **options) as executable:
        assert _is_fused(executable.report())
        found = executable.run({"x": x})["y"]
    with np.errstate(all="ignore"):
        results = cast("list[NDArray[np.float32]]", ReferenceEvaluator(built).run(None, {"x": x}))
    np.testing.assert_allclose(found, results[0], rtol=1e-5, atol=1e-5)


def test_a_part_that_a_sum_overwrites() -> None:
    """Checks a sum `f` that is written in place of `a` before the norm could read `a`."""
    nodes = _nodes()
    nodes[3:3] = [node("Conv", "b v", "g", group=16), node("Add", "g a", "f")]
    nodes[-1:] = [node("Conv", "e w", "h"), node("Concat", "h f", axis=1)]
    built = model(nodes, {"x": (1, 16, 8, 8)}, _WEIGHTS)
    check(built, target="dnnl{layout=channels_last}", prune="off")


def check_bf16() -> None:
    """Checks that concatenated values keep their type if the processor has `bf16` instructions."""
    built = dense_blocks()
    inputs = random_inputs(built)
    options = {"targets": ("dnnl{winograd=off layout=channels_last}",), "prune": "off"}
    with byoc_mlir.compile(built, precision="bf16", **options) as executable:
        found, report = executable.run(inputs), executable.report()
    assert_close(found, run_onnxruntime(built, inputs))
    fused = {row.precision for row in report if NAME in row.implementation}
    assert fused == {"bf16" if engine().has_bf16 else "f32"}


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_bf16", "amx"))
def test_bf16(level: str) -> None:
    call_at(level, check_bf16)


def check_lowered() -> None:
    """Checks the chosen layout."""
    built = dense_blocks()
    inputs = random_inputs(built)
    with byoc_mlir.compile(built, targets=("dnnl",), prune="off") as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(built, inputs), tolerance=1e-5)


@pytest.mark.parametrize("level", distinct_levels("sse41", "avx2", "avx512"))
def test_lower_instruction_sets(level: str) -> None:
    call_at(level, check_lowered)
