"""Sizes that ONNX's shape inference derives from a model's inputs."""

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
from byoc_mlir.frontend.rounded_sizes import rounded_values, with_symbols
from byoc_mlir.frontend.schema import check_node
from byoc_mlir.tensors import MOST_SIZES

Sizes: TypeAlias = Sequence[int | None]

_MOST_ELEMENTS = 64
"""Maximum elements of a constant that may be a shape; inference sees no larger ones."""


def known_sizes(model: onnx.ModelProto) -> Mapping[str, Sizes]:
    """Returns the sizes of the graph's tensors by name; `None` for a size that is not known.

    Declared shapes are ignored, except the inputs' shapes. If inference refuses the model, because
    it has no opset for a node's domain, the result is empty.
    """
    inferred = inferred_with_values(model)
    return {} if inferred is None else sizes_of_tensors(inferred)  # the importer says why


def sizes_of_tensors(graph: onnx.GraphProto) -> Mapping[str, Sizes]:
    """Returns the sizes of an inferred graph's tensors by name; `None` for an unknown size."""
    return {
        info.name: tuple(
            dim.dim_value if dim.HasField("dim_value") else None
            for dim in info.type.tensor_type.shape.dim
        )
        for info in (*graph.input, *graph.value_info, *graph.output)
        if info.type.tensor_type.HasField("shape")
    }


def inferred_with_values(model: onnx.ModelProto) -> onnx.GraphProto | None:
    """Returns the main graph with ONNX's inferred shapes, also from the content of small tensors;
    `None` if inference refuses the model.

    ONNX follows no float. So integers that are rounded from floats count as new symbols.
    """
    outline = graph_outline(model)
    inferred = inferred_graph(outline, with_values=True)
    rounded = rounded_values(model.graph.node) if inferred is not None else frozenset[str]()
    if inferred is None or not rounded:
        return inferred
    sizes = sizes_of_tensors(inferred)
    shapes = {name: _few(sizes[name]) for name in rounded & sizes.keys()}
    with_symbols(
        outline.graph, {name: shape for name, shape in shapes.items() if shape is not None}
    )
    return inferred_graph(outline, with_values=True) or inferred


def _few(sizes: Sizes) -> Sequence[int] | None:
    """Returns the shape of a tensor of so few elements that each may be a symbol, or `None`."""
    known = [size for size in sizes if size is not None]
    is_few = len(sizes) == len(known) < 2 and math.prod(known) <= MOST_SIZES
    return known if is_few else None


def inferred_graph(model: onnx.ModelProto, *, with_values: bool = False) -> onnx.GraphProto | None:
    """Returns the main graph with ONNX's inferred shapes; `None` if inference refuses the model.

    For some ops, inference reads a required operand without checking that it exists, and crashes
    the process. So models whose nodes do not fit their schemas, or are not in order, are refused
    first.

    Args:
        with_values: True to derive sizes from the content of small tensors, too.
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
    """True if all nodes with a schema fit it, including nodes of subgraphs."""
    return all(
        _fits(node, opsets) and all(_fit(graph.node, opsets) for graph in subgraphs(node))
        for node in nodes
    )


def _is_in_order(nodes: Iterable[onnx.NodeProto], known: Set[str]) -> bool:
    """True if nodes, and nodes of their subgraphs, read only names that are defined before."""
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
    """Returns the model without the parts that shape inference must not see."""
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
