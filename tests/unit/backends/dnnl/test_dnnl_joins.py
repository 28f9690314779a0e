"""Concatenations without copies, whose parts are written to their final position."""

from __future__ import annotations

import numpy as np
import pytest
from dnnl_models import check, model, node
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.runtime.report import Report
from byoc_mlir.testing.isa import call_at, distinct_levels
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime


def _copies(report: Report) -> list[str]:
    """Returns the concatenations that are executed."""
    rows = (row for row in report.placed("dnnl") if row.op_type == "Concat")
    return [row.node for row in rows if row.implementation]


def _branches(batch: int) -> ModelProto:
    """Returns branches that are read before they are concatenated, concatenated again, and
    activated in place.
    """
    net = GraphBuilder("branches", seed=0)
    x = net.relu(net.conv(net.input("x", [batch, 3, 9, 13]), 32, 3))
    for _ in range(2):
        squeezed = net.relu(net.conv(x, 16, 1))
        wide = net.swish(net.conv(squeezed, 32, 3))
        both = net.concat(net.relu(net.conv(squeezed, 32, 1)), wide)
        deep = net.conv(net.relu(net.conv(wide, 16, 3)), 16, 1)
        x = net.concat(deep, both, net.max_pool(x, 3, 1, padding=1))
    net.output(net.concat(net.conv(x, 16, 1), net.conv(x, 32, 3)), "y", [batch, 48, 9, 13])
    return net.build()


@pytest.mark.values
@pytest.mark.parametrize("layout", ["blocked_8", "plain", "channels_last"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_branches(layout: str, batch: int, threads: int) -> None:
    target = f"dnnl{{layout={layout} activation=loop}}"
    report = check(_branches(batch), threads=threads, target=target, prune="off")
    in_pieces = batch == 1 and layout != "channels_last"
    assert bool(_copies(report)) != in_pieces


def test_a_part_that_a_sum_overwrites_is_copied() -> None:
    nodes = [
        node("Conv", "x v", "a"),
        node("Conv", "x w", "b"),
        node("Concat", "a b", "c", axis=1),
        node("Conv", "b v", "d"),
        node("Add", "d a", "e"),
        node("Concat", "c e", axis=1),
    ]
    weights = {"v": (16, 16, 1, 1), "w": (16, 16, 1, 1)}
    built = model(nodes, {"x": (1, 16, 8, 8)}, weights)
    report = check(built, target="dnnl{layout=blocked_8}", prune="off")
    assert "Concat_c" in _copies(report)


def test_resampling_in_what_is_returned() -> None:
    """Checks a resize into an output: the library's stores fault on unaligned addresses, which
    outputs may have.
    """
    net = GraphBuilder("resized", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 16, 32, 32]), 16, 3))
    scales = net.constant(np.array([1, 1, 4, 4], np.float32), "scales")
    wide = net.op("Resize", x, "", scales, mode="linear")
    net.channels[wide] = 16
    other = net.conv_transpose(x, 16, 4, 4)
    net.output(net.concat(wide, other), "y", [1, 32, 128, 128])
    check(net.build(), prune="off")


def check_lowered() -> None:
    """Checks the chosen layouts."""
    built = _branches(1)
    inputs = random_inputs(built)
    with byoc_mlir.compile(built, targets=("dnnl",), prune="off") as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(built, inputs), tolerance=1e-5)


@pytest.mark.parametrize("level", distinct_levels("sse41", "avx2", "avx512"))
def test_lower_instruction_sets(level: str) -> None:
    call_at(level, check_lowered)
