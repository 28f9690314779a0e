"""The graphs inside of ONNX nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, NodeProto


def graphs_of(attribute: AttributeProto) -> Iterator[GraphProto]:
    """The graphs that an attribute is."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs among a node's attributes."""
    for attribute in node.attribute:
        yield from graphs_of(attribute)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, each before those of the graphs in it."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)
