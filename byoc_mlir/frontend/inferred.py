"""Sizes that follow from a model's inputs, as ONNX's shape inference finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import onnx
from onnx import shape_inference

Sizes: TypeAlias = Sequence[int | None]

_MOST_ELEMENTS = 64
"""Constants of more are no shapes, so that their content does not matter."""


def known_sizes(model: onnx.ModelProto) -> Mapping[str, Sizes]:
    """By name, the sizes of the graph's tensors; `None` for one that is no number.

    What the model declares of anything but its inputs is not believed. Nothing is known of a model
    that inference refuses: a node is of a domain whose opset the model does not import.
    """
    try:
        inferred = shape_inference.infer_shapes(_outline(model), data_prop=True).graph
    except shape_inference.InferenceError:  # the importer names the node, or accepts it
        return {}
    return {
        info.name: tuple(
            dim.dim_value if dim.HasField("dim_value") else None
            for dim in info.type.tensor_type.shape.dim
        )
        for info in (*inferred.input, *inferred.value_info, *inferred.output)
        if info.type.tensor_type.HasField("shape")
    }


def _outline(model: onnx.ModelProto) -> onnx.ModelProto:
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
