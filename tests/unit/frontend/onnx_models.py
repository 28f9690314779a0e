"""Small ONNX models for the frontend's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[int | str]]] = (("x", TensorProto.FLOAT, (2, 3)),),
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
    initializers: Sequence[TensorProto] = (),
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(initializers),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def add_of(tensor: TensorProto) -> ModelProto:
    """Returns a model that adds an initializer named `w` to `x`."""
    return model_of([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[tensor])


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """Returns a node, from names separated by spaces."""
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)
