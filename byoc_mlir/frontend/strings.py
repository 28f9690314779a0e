"""Models with tensors of strings, cut into parts with strings and parts that can be compiled."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import TensorProto

from byoc_mlir.frontend.inferred import inferred_graph
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.stages.parts import Part, parts_around


def string_parts(model: onnx.ModelProto) -> tuple[Part, ...]:
    """The parts of a checked model in order, none when it has no strings."""
    strings = set(string_names(model)) if _mentions_strings(model) else set[str]()

    def has_strings(node: onnx.NodeProto) -> bool:
        return not strings.isdisjoint((*read_names(node), *node.output))

    return parts_around(model, has_strings) if strings else ()


def _mentions_strings(model: onnx.ModelProto) -> bool:
    graph = model.graph
    return (
        any(value.type.tensor_type.elem_type == TensorProto.STRING for value in graph.input)
        or any(tensor.data_type == TensorProto.STRING for tensor in graph.initializer)
        or any(map(_makes_strings, graph.node))
    )


def _makes_strings(node: onnx.NodeProto) -> bool:
    for item in node.attribute:
        if item.name in ("value_string", "value_strings", "values_strings", "values_tensor"):
            return True
        if TensorProto.STRING in (item.t.data_type, item.i if item.name == "to" else None):
            return True
    return False


def string_names(model: onnx.ModelProto) -> Iterator[str]:
    """The names of tensors of strings, as far as they are declared or inferred."""
    graph = inferred_graph(model) or model.graph  # where a node is damaged the importer names it
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            yield value.name
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.STRING:
            yield tensor.name
