"""Loops without an iteration, whose rows have the shape that an iteration would give them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

import byoc_mlir

FLOAT = TensorProto.FLOAT


def _info(name: str, kind: int, shape: list[int | str] | None = None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
) -> ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    return model


@pytest.mark.parametrize("shape", [[1], ["n"], ["n", 4]])
def test_loop(shape: list[int | str]) -> None:
    one = numpy_helper.from_array(np.array([1], np.float32))
    body = helper.make_graph(
        [
            helper.make_node("Constant", [], ["one"], value=one),
            helper.make_node("Unsqueeze", ["s", "i"], ["row"]),
            helper.make_node("Add", ["s", "one"], ["s2"]),
            helper.make_node("Identity", ["c"], ["co"]),
        ],
        "b",
        [_info("k", TensorProto.INT64, []), _info("c", TensorProto.BOOL, []), _info("s", FLOAT)],
        [_info("co", TensorProto.BOOL, []), _info("s2", FLOAT), _info("row", FLOAT)],
    )
    first = numpy_helper.from_array(np.array([0]), "i")
    nodes = [helper.make_node("Loop", ["M", "", "x"], ["y", "rows"], "loop", body=body)]
    inputs = [_info("x", FLOAT, shape), _info("M", TensorProto.INT64, [])]
    model = _model(nodes, inputs, [_info("y", FLOAT), _info("rows", FLOAT)])
    model.graph.initializer.append(first)
    x = np.ones([3 if isinstance(size, str) else size for size in shape], np.float32)
    executable = byoc_mlir.compile(model, ())
    for trips in (2, 0, 3):
        found = executable.run({"x": x, "M": np.array(trips)})
        assert found["rows"].shape == (trips, 1, *x.shape)
        np.testing.assert_array_equal(found["y"], x + trips)


def test_scan() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Neg", ["t"], ["row"])],
        "b",
        [_info("s", FLOAT), _info("e", FLOAT)],
        [_info("t", FLOAT), _info("row", FLOAT)],
    )
    nodes = [helper.make_node("Scan", ["x", "e"], ["y", "rows"], body=body, num_scan_inputs=1)]
    inputs = [_info("x", FLOAT, [2]), _info("e", FLOAT, ["n", 2])]
    executable = byoc_mlir.compile(
        _model(nodes, inputs, [_info("y", FLOAT), _info("rows", FLOAT)]), ()
    )
    x = np.ones(2, np.float32)
    for steps in (0, 3):
        found = executable.run({"x": x, "e": np.ones((steps, 2), np.float32)})
        assert found["rows"].shape == (steps, 2)
        np.testing.assert_array_equal(found["y"], x + steps)


def test_a_value_that_is_carried_and_collected() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["co"])],
        "b",
        [
            _info("i", TensorProto.INT64, []),
            _info("c", TensorProto.BOOL, []),
            _info("p", FLOAT, [2]),
        ],
        [_info("co", TensorProto.BOOL, []), _info("p", FLOAT, [2]), _info("p", FLOAT, [2])],
    )
    nodes = [helper.make_node("Loop", ["M", "", "x"], ["y", "rows"], body=body)]
    outputs = [_info("y", FLOAT, [2]), _info("rows", FLOAT, [3, 2]), _info("y", FLOAT, [2])]
    model = _model(nodes, [_info("x", FLOAT, [2])], outputs)
    model.graph.initializer.append(numpy_helper.from_array(np.array(3), "M"))
    x = np.array([1, 2], np.float32)
    executable = byoc_mlir.compile(model, ())
    assert executable.outputs == ("y", "rows", "y")
    found = executable.run({"x": x})
    np.testing.assert_array_equal(found["y"], x)
    np.testing.assert_array_equal(found["rows"], [x] * 3)
