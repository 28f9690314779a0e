"""Random nodes of `com.microsoft`, against ONNX Runtime."""

from __future__ import annotations

from random import Random

import pytest
from nodes import run_imported

from byoc_mlir.errors import InputValuesNeededError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import RECIPES, add_node
from byoc_mlir.testing.samples.onnx_nodes.tensor import MICROSOFT

OPS = sorted(name for domain, name in RECIPES if domain == MICROSOFT)


@pytest.mark.parametrize("op_type", OPS)
def test_as_onnxruntime(op_type: str) -> None:
    """Checks the nodes that ONNX Runtime accepts, at least half of them."""
    accepted = 0
    for number in range(24):
        graph = RandomGraph(Random(f"{op_type} {number}"), 17)
        assert add_node(graph, op_type, MICROSOFT)
        model = graph.model()
        try:
            want = run_onnxruntime(model, graph.feeds)
        except Exception as error:  # of one of many types, of which not all have names in Python
            if "ONNXRuntimeError" not in str(error):
                raise
            continue
        try:
            got = run_imported(model, graph.feeds)
        except InputValuesNeededError:  # a size is no constant
            continue
        assert_agrees(got, want, 1e-4)
        accepted += 1
    assert accepted >= 12
