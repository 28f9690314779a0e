"""Models with strings, cut into interpreted parts that have strings, and compiled parts that have
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx
from onnx import TensorProto

from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.graphs import all_nodes, called_function, function_key, standard_name
from byoc_mlir.frontend.inferred import inferred_graph
from byoc_mlir.frontend.known_ops import node_schema
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.schema import check_strings
from byoc_mlir.frontend.stages.parts import ModelPart, parts_around
from byoc_mlir.frontend.stages.suggestions import mentions_strings
from byoc_mlir.frontend.structures import tensor_type_of


def string_parts(model: onnx.ModelProto) -> tuple[ModelPart, ...]:
    """Returns the parts of a checked model in order; empty if the model has no strings."""
    strings = set(string_names(model)) if mentions_strings(model) else set[str]()

    def has_strings(node: onnx.NodeProto) -> bool:
        return not strings.isdisjoint((*read_names(node), *node.output))

    return parts_around(model, has_strings) if strings else ()


def string_names(model: onnx.ModelProto) -> Iterator[str]:
    """Yields the names of string tensors, and of sequences and optionals of strings, declared or
    inferred.
    """
    graph = inferred_graph(model) or model.graph  # where a node is damaged the importer names it
    for value in (*graph.input, *graph.value_info, *graph.output):
        if tensor_type_of(value.type).elem_type == TensorProto.STRING:
            yield value.name
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.STRING:
            yield tensor.name


def interpreted_nodes(
    model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]
) -> Iterator[tuple[str, onnx.NodeProto, int]]:
    """Yields the nodes that the interpreter runs for the given nodes, with names and opset
    versions.

    Nodes of bodies and functions have the name of the node that contains or calls these.

    Raises:
        InvalidModelError: an op does not accept strings, but a node has some.
    """
    functions = {function_key(function): function for function in model.functions}
    opsets, strings = opset_versions(model), set(string_names(model))

    def inner(
        name: str, nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int]
    ) -> Iterator[tuple[str, onnx.NodeProto, int]]:
        for node in all_nodes(nodes):
            body = functions.get(called_function(node))
            if body is None or node.overload:  # which the interpreter does not look at
                yield name, node, opsets.get(standard_name(node.domain), 0)
            else:
                own = {standard_name(entry.domain): entry.version for entry in body.opset_import}
                yield from inner(name, body.node, own)

    for node in nodes:
        schema = node_schema(node, opsets.get(standard_name(node.domain), 0))
        if schema is not None and called_function(node) not in functions:
            check_strings(node, schema, strings)
        yield from inner(node.name, [node], opsets)
