"""Conversion of nodes to functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np
from onnx import NodeProto

from byoc_mlir.interpreter.ops import OPS
from byoc_mlir.interpreter.schemas import name_of, schema_of, value_of
from byoc_mlir.tensors import Array

Run = Callable[..., tuple[Array, ...]]
"""Function that computes a node's results; omitted operands are `None`."""


def run_of(node: NodeProto, opset: int, constants: Mapping[str, Array]) -> Run:
    """Returns the function that computes a node.

    Args:
        node: node of an op of `OPS`.
        opset: version of the domain, which determines the defaults of omitted attributes.
        constants: arrays that never change, by input name.
    """
    op = OPS[name_of(node)]
    function = op(*map(constants.get, node.input)) if isinstance(op, type) else op
    attributes = _attributes(node, opset, function)

    def run(*operands: Array | None) -> tuple[Array, ...]:
        found = function(*operands, **attributes)
        return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))

    return run


def _attributes(node: NodeProto, opset: int, function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the attributes that the node's function takes.

    They include the node's `opset` and its number of `outputs`.
    """
    if isinstance(function, np.ufunc):
        return {}
    schema = schema_of(name_of(node), opset)
    found: dict[str, Any] = {"opset": opset, "outputs": len(node.output)}
    found |= {} if schema is None else schema.defaults
    found |= {item.name: value_of(item) for item in node.attribute}
    parameters = signature(function).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):
        return found
    return {name: value for name, value in found.items() if name in parameters}
