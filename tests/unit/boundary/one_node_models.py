"""Models of one node or a few, and their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
X = np.ones(3, np.float32)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Any] | None = None,
    *,
    element_type: int = TensorProto.FLOAT,
    opset: int = 20,
) -> onnx.ModelProto:
    """Returns a model whose output is its last node's."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, element_type, shape) for n, shape in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def one(
    op_type: str,
    shape: Sequence[int | str] = (3,),
    constants: Mapping[str, Any] | None = None,
    *,
    element_type: int = TensorProto.FLOAT,
    opset: int = 20,
    inputs: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    """Returns a model of one node, whose inputs are `x` and the constants unless they are named."""
    names = inputs.split(" ") if inputs else ["x", *(constants or {})]
    node = helper.make_node(op_type, names, ["y"], "n", **attributes)
    return model([node], {"x": shape}, constants, element_type=element_type, opset=opset)


def chain(ops: Sequence[str], length: int) -> onnx.ModelProto:
    """Returns a chain of element-wise ops; binary ops read a constant as well."""
    nodes: list[onnx.NodeProto] = []
    for number in range(length):
        op_type = ops[number % len(ops)]
        name = f"t{number - 1}" if number else "x"
        operands = [name, "c"] if op_type in ("Add", "Mul") else [name]
        nodes.append(helper.make_node(op_type, operands, [f"t{number}"]))
    return model(nodes, {"x": [2, 8]}, {"c": np.ones(8, np.float32)})
