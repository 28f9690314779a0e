"""Facts about ONNX graphs, subgraphs included."""

from __future__ import annotations

import onnx

from byoc_mlir.frontend.graphs import all_nodes
from byoc_mlir.frontend.order import read_names


def ops_in(graph: onnx.GraphProto) -> frozenset[str]:
    """Returns the ops of a graph and its subgraphs, with the domain if it is not ONNX's own."""
    return frozenset(
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for node in all_nodes(graph.node)
    )


def part_of(model: onnx.ModelProto, output: str) -> onnx.ModelProto:
    """Returns the model with only one of its outputs and the nodes that it depends on."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    for other in [value for value in model.graph.output if value.name != output]:
        part.graph.output.remove(other)
    remove_unneeded(part)
    return part


def remove_unneeded(model: onnx.ModelProto) -> frozenset[str]:
    """Removes the nodes, inputs and constants that the outputs do not need.

    Returns:
        The names of the values that they need.
    """
    graph = model.graph
    needed = {output.name for output in graph.output}
    for node in reversed(list(graph.node)):
        if needed.isdisjoint(node.output):
            graph.node.remove(node)
        else:
            needed.update(read_names(node))
    for value in [value for value in graph.input if value.name not in needed]:
        graph.input.remove(value)
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in needed]:
        graph.initializer.remove(tensor)
    return frozenset(needed)
