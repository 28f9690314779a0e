"""Transpositions in blocks whose sizes are arguments of native code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import byoc_mlir
from byoc_mlir.lowering.linalg_to_loops.blocked import ALONG
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

_CASES = [
    (["b", 64, 4096], [0, 2, 1], [(1, 64, 4096), (3, 64, 4096)]),
    (["b", 64, "p"], [0, 2, 1], [(1, 64, 4096), (2, 64, 4097), (1, 64, 3), (1, 64, 0)]),
    (["b", "p", 60], [0, 2, 1], [(1, 1024, 60), (2, 131, 60), (1, 1, 60)]),
    (["n", "m"], [1, 0], [(512, 512), (77, 1030), (5, 9)]),
]


def _model(declared: list[int | str], order: list[int]) -> ModelProto:
    b = GraphBuilder("turned", seed=0, opset=18)
    turned = b.op("Relu", b.op("Transpose", b.input("x", declared), perm=order))
    b.output(turned, "y", [None] * len(declared), TensorProto.FLOAT)
    return b.build()


@pytest.mark.values
@pytest.mark.parametrize(("declared", "order", "shapes"), _CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_and_what_is_left_of_them(
    declared: list[int | str],
    order: list[int],
    shapes: list[tuple[int, ...]],
    threads: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    model = _model(declared, order)
    folder = tmp_path_factory.mktemp("ir")
    executable = byoc_mlir.compile(model, targets=(), threads=threads, dump_ir=folder, cache=False)
    for number, shape in enumerate(shapes):
        feeds = {"x": np.random.default_rng(number).standard_normal(shape).astype(np.float32)}
        assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))
    assert len(executable.report().variants) == 1
    texts = [path.read_text() for path in folder.rglob("*choose-schedules*")]
    assert any(f'schedule = "{ALONG}"' in text for text in texts)
