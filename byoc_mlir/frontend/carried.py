"""Nodes of ops that only a backend knows, imported as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import helper
from xdsl.dialects.builtin import TensorType

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.value import Value


def carry(
    context: NodeContext,
    domain: str,
    inputs: Sequence[Value],
    results: Sequence[tuple[Any, Sequence[int]]],
    **attributes: Any,
) -> list[Value]:
    """Imports a node of a custom op as a `relay.onnx_node`, for a backend that knows the op.

    Args:
        context: context of the node.
        domain: domain of the op.
        inputs: all inputs of the node.
        results: numpy dtype and shape of each output.
        attributes: attributes of the node; one that is `None` is omitted.

    Returns:
        The node's outputs.
    """
    node = helper.make_node(
        context.op_type,
        [f"in{position}" for position in range(len(inputs))],
        [f"out{position}" for position in range(len(results))],
        domain=domain,
        **attributes,
    )
    types = [TensorType(relay_type(dtype), list(shape)) for dtype, shape in results]
    op = OnnxNodeOp.of(node, context.opset, list(map(context.builder.operand, inputs)), types)
    context.builder.append(op, node_location(context.name))
    return [Value(context.name, result) for result in op.results]
