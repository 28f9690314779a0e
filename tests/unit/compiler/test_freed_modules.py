"""Memory that an executable with symbolic sizes leaves behind when it is freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.dialects.relay.constant import held_bytes

_WIDTH = 64


def dense() -> ModelProto:
    """Returns a matmul and a ReLU for any number of rows."""
    weights = np.random.default_rng(7).standard_normal((_WIDTH, _WIDTH)).astype(np.float32)
    signature = f"(float[rows, {_WIDTH}] x) => (float[rows, {_WIDTH}] y)"
    return parsed(signature, "product = MatMul (x, w) y = Relu (product)", {"w": weights})


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_weights_are_freed_without_a_full_collection(targets: tuple[str, ...]) -> None:
    model = dense()
    gc.collect()
    before = held_bytes()
    executable = byoc_mlir.compile(model, targets, cache=False)
    for rows in (2, 3):
        executable.run({"x": np.ones((rows, _WIDTH), np.float32)})
    executable.close()
    gc.collect()  # what is left is old now
    assert held_bytes() > before
    del executable
    gc.collect(1)
    assert held_bytes() == before
