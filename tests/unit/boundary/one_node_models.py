"""Models of one node or a few, and their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from helpers.models import model_of
from onnx import TensorProto, helper

Array = np.ndarray[Any, np.dtype[Any]]
X = np.ones(3, np.float32)


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
    x = helper.make_tensor_value_info("x", element_type, shape)
    return model_of([node], {"x": x}, constants, opset=opset)


def chain(ops: Sequence[str], length: int) -> onnx.ModelProto:
    """Returns a chain of element-wise ops; binary ops read a constant as well."""
    nodes: list[onnx.NodeProto] = []
    for number in range(length):
        op_type = ops[number % len(ops)]
        name = f"t{number - 1}" if number else "x"
        operands = [name, "c"] if op_type in ("Add", "Mul") else [name]
        nodes.append(helper.make_node(op_type, operands, [f"t{number}"]))
    return model_of(nodes, {"x": [2, 8]}, {"c": np.ones(8, np.float32)})
