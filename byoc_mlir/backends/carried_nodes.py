"""ONNX nodes that the IR carries along as they are, written into a graph of a backend's own."""

from __future__ import annotations

from collections.abc import MutableMapping

import onnx
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp


def renamed_node(
    op: OnnxNodeOp, names: MutableMapping[SSAValue, str], prefix: str
) -> onnx.NodeProto:
    """The node of `op` with the names of its SSA values.

    Args:
        names: of its operands; its results are added, named `prefix` and their position.
    """
    node = op.proto
    operands, results = iter(op.operands), iter(op.results)
    inputs = [names[next(operands)] if name else "" for name in node.input]
    outputs: list[str] = []
    for position, name in enumerate(node.output):
        outputs.append(f"{prefix}_{position}" if name else "")
        if name:
            names[next(results)] = outputs[-1]
    del node.input[:], node.output[:]
    node.input.extend(inputs)
    node.output.extend(outputs)
    return node
