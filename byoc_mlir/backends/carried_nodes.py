"""ONNX nodes that the IR keeps unchanged, for graphs that a backend writes."""

from __future__ import annotations

from collections.abc import MutableMapping

import onnx
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp


def renamed_node(
    op: OnnxNodeOp, names: MutableMapping[SSAValue, str], prefix: str
) -> onnx.NodeProto:
    """Returns the ONNX node of `op`, with inputs and outputs renamed after its SSA values.

    Args:
        names: names of the operands. The function adds the results, named by `prefix` and position.
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
