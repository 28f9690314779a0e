"""Graphs inside ONNX nodes, and keys of the model's functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

FunctionKey: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function of the model."""

STAGE_DOMAIN = "byoc"
"""Domain of the ops at the ends of segments: see `ops.bounded`."""


def standard_name(domain: str) -> str:
    """Returns the normalised name of a domain; the default domain's name is empty."""
    return "" if domain == "ai.onnx" else domain


def function_key(function: FunctionProto) -> FunctionKey:
    """Returns the key of a function of the model."""
    return standard_name(function.domain), function.name, function.overload


def called_function(node: NodeProto) -> FunctionKey:
    """Returns the key that the function of a node's op would have; the model may not define it."""
    return standard_name(node.domain), node.op_type, node.overload


def attribute_of(node: NodeProto, name: str) -> AttributeProto:
    """Returns a node's attribute; an empty one if the node has none of that name."""
    return next((each for each in node.attribute if each.name == name), AttributeProto())


def graphs_of(attribute: AttributeProto) -> Iterator[GraphProto]:
    """Yields the graphs in an attribute."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yields the graphs in a node's attributes."""
    for attribute in node.attribute:
        yield from graphs_of(attribute)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yields the nodes, each before the nodes of its subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)


def with_nodes(model: ModelProto, nodes: Iterable[NodeProto]) -> ModelProto:
    """Replaces the nodes of a model, and returns the model."""
    replaced = list(nodes)
    del model.graph.node[:]
    model.graph.node.extend(replaced)
    return model


def standard_node(node: NodeProto) -> NodeProto:
    """Returns the standard ONNX node from which a node of `STAGE_DOMAIN` was made; returns other
    nodes unchanged.

    ```text
    n, n:count = byoc.NonZero (x)
    // is made of
    n = NonZero (x)
    ```
    """
    if node.domain != STAGE_DOMAIN or node.op_type == "Sizes":
        return node
    made_of = deepcopy(node)
    made_of.domain = ""
    del made_of.output[-1]
    return made_of
