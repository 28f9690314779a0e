"""Sizes that follow from a model's inputs, as ONNX's shape inference finds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

import onnx
from onnx import shape_inference

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.graphs import standard_name, subgraphs
from byoc_mlir.frontend.known_ops import node_schema
from byoc_mlir.frontend.order import defined_names
from byoc_mlir.frontend.schema import check_node

Sizes: TypeAlias = Sequence[int | None]

_MOST_ELEMENTS = 64
"""Constants of more are no shapes, so that their content does not matter."""


def known_sizes(model: onnx.ModelProto) -> Mapping[str, Sizes]:
    """By name, the sizes of the graph's tensors; `None` for one that is no number.

    What the model declares of anything but its inputs is not believed. Nothing is known of a model
    that inference refuses: a node is of a domain whose opset the model does not import.
    """
    inferred = inferred_graph(graph_outline(model), with_values=True)
    if inferred is None:  # the importer names the node, or accepts it
        return {}
    return {
        info.name: tuple(
            dim.dim_value if dim.HasField("dim_value") else None
            for dim in info.type.tensor_type.shape.dim
        )
        for info in (*inferred.input, *inferred.value_info, *inferred.output)
        if info.type.tensor_type.HasField("shape")
    }


def inferred_graph(model: onnx.ModelProto, *, with_values: bool = False) -> onnx.GraphProto | None:
    """The main graph with what ONNX's shape inference finds, `None` where it refuses the model.

    For some ops inference reads a required operand without asking whether it is there, which ends
    the process: it does not get a model with a node that does not fit its schema, or that reads
    what comes after it.

    Args:
        with_values: whether sizes may follow from what small tensors hold.
    """
    if not _fit(model.graph.node, opset_versions(model)):
        return None
    if not _is_in_order(model.graph.node, defined_names(model.graph)):
        return None
    for function in model.functions:
        opsets = {standard_name(entry.domain): entry.version for entry in function.opset_import}
        if not _fit(function.node, opsets):
            return None
        if not _is_in_order(function.node, set(function.input)):
            return None
    try:
        return shape_inference.infer_shapes(model, data_prop=with_values).graph
    except shape_inference.InferenceError:
        return None


def _fit(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> bool:
    """Whether all nodes that have a schema fit it, those in subgraphs too."""
    return all(
        _fits(node, opsets) and all(_fit(graph.node, opsets) for graph in subgraphs(node))
        for node in nodes
    )


def _is_in_order(nodes: Iterable[onnx.NodeProto], known: Set[str]) -> bool:
    """Whether nodes, and those in their subgraphs, read what is known or was computed before."""
    defined = set(known)
    for node in nodes:
        if not defined.issuperset(filter(None, node.input)):
            return False
        inner = ((graph.node, defined | defined_names(graph)) for graph in subgraphs(node))
        if not all(_is_in_order(*one) for one in inner):
            return False
        defined.update(node.output)
    return True


def _fits(node: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    domain = standard_name(node.domain)
    schema = node_schema(node, opsets[domain]) if domain in opsets else None
    if schema is None:
        return True
    try:
        check_node(node, node.name, schema)
    except InvalidModelError:
        return False
    return True


def graph_outline(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without what inference does not need, or should not see."""
    graph = onnx.GraphProto(name=model.graph.name)
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.initializer.extend(_outlines(model.graph.initializer))
    graph.output.extend(onnx.ValueInfoProto(name=output.name) for output in model.graph.output)
    outline = onnx.ModelProto(ir_version=model.ir_version, graph=graph)
    outline.opset_import.extend(model.opset_import)
    outline.functions.extend(model.functions)
    return outline


def _outlines(tensors: Sequence[onnx.TensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in tensors:
        if math.prod(tensor.dims) <= _MOST_ELEMENTS:
            yield tensor
        else:
            yield onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
