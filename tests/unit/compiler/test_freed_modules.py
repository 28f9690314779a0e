"""Memory that an executable with symbolic sizes leaves behind when it is freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.dialects.relay.constant import held_bytes

_WIDTH = 64


def dense() -> ModelProto:
    """Returns a matmul and a ReLU for any number of rows."""
    weights = np.random.default_rng(7).standard_normal((_WIDTH, _WIDTH)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["y"]),
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", _WIDTH]) for name in "xy"
    )
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


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
