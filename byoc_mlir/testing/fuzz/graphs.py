"""Facts about ONNX graphs, subgraphs included."""

from __future__ import annotations

from collections.abc import Iterator

import onnx


def ops_in(graph: onnx.GraphProto) -> frozenset[str]:
    """The ops of a graph and of the graphs in it, with their domain where it is not ONNX's own."""
    return frozenset(
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in _nodes(graph)
    )


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, by its inputs and in its subgraphs."""
    yield from node.input
    for graph in _inside(node):
        for inner in graph.node:
            yield from names_read(inner)
        yield from (output.name for output in graph.output)


def part_of(model: onnx.ModelProto, output: str) -> onnx.ModelProto:
    """The model with those nodes alone that one of its outputs follows from."""
    wanted, kept = {output}, list[onnx.NodeProto]()
    for node in reversed(model.graph.node):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(names_read(node))
    part = onnx.ModelProto()
    part.CopyFrom(model)
    del part.graph.node[:]
    part.graph.node.extend(reversed(kept))
    return part


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in _inside(node):
            yield from _nodes(inner)


def _inside(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.HasField("g"))
