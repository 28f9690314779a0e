"""Regions of devices in branches and in the bodies of loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fakenpu.control import Control, Fault
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.errors import DeviceError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

TRIPS = 3


def _model() -> ModelProto:
    """Returns a model with matmuls around, and inside of, a loop and a branch."""
    weight = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32) / 4
    tensor = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])
    condition = helper.make_tensor_value_info("condition", TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            _node("MatMul", ["carried", "weight"], "product"),
            _node("Tanh", ["product"], "next"),
            _node("Identity", ["go_on"], "goes_on"),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("carried", TensorProto.FLOAT, [4, 8]),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [4, 8]),
        ],
    )
    then_nodes = [
        _node("MatMul", ["looped", "weight"], "first"),
        _node("Exp", ["first"], "middle"),
        _node("MatMul", ["middle", "weight"], "then"),
    ]
    nodes = [
        _node("MatMul", ["x", "weight"], "begin"),
        helper.make_node("Loop", ["trips", "", "begin"], ["looped"], "loop", body=body),
        helper.make_node(
            "If",
            ["condition"],
            ["chosen"],
            "if",
            then_branch=_branch(then_nodes),
            else_branch=_branch([_node("Sin", ["looped"], "else")]),
        ),
        _node("MatMul", ["chosen", "weight"], "out"),
    ]
    constants = [
        numpy_helper.from_array(weight, "weight"),
        numpy_helper.from_array(np.array(TRIPS, np.int64), "trips"),
    ]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [4, 8])
    graph = helper.make_graph(nodes, "control", [tensor, condition], [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _node(kind: str, inputs: Sequence[str], output: str) -> NodeProto:
    return helper.make_node(kind, inputs, [output], output)


def _branch(nodes: Sequence[NodeProto]) -> GraphProto:
    name = nodes[-1].output[0]
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8])
    return helper.make_graph(nodes, name, [], [output])


@pytest.mark.parametrize(("condition", "copies"), [(True, 2 + TRIPS + 2), (False, 2 + TRIPS)])
def test_regions_in_bodies_and_branches(condition: bool, copies: int) -> None:
    model, control = _model(), Control("fakenpu")
    inputs = {
        "x": np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32),
        "condition": np.array(condition),
    }
    targets = ("fakenpu", "fakenpu_eltwise")
    with byoc_mlir.compile(model, targets=targets, fallback="allow") as executable:
        with control.lazy():  # a wait that is missing in a body would give a wrong number
            before = control.counters()
            outputs = executable.run(inputs)
            found = control.counters().since(before)
        assert_agrees(outputs, run_onnxruntime(model, inputs), 1e-5)
        assert (found.copies_in, found.copies_out) == (copies, copies)
        kernels_of_a_body = control.fault(Fault.KERNEL, 3)
        with kernels_of_a_body, pytest.raises(DeviceError, match="device 'fakenpu'"):
            executable.run(inputs)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)
