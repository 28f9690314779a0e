"""Segment of a split model, and its conversion to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from byoc_mlir.frontend.graphs import STAGE_DOMAIN
from byoc_mlir.frontend.inferred import Sizes
from byoc_mlir.frontend.value import Array
from byoc_mlir.tensors import Trim, size_input

_INTEGERS = onnx.AttributeProto.INTS


@dataclass(frozen=True)
class Stage:
    """Segment of a model: its inputs, outputs, nodes and initializers."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[onnx.NodeProto, ...]
    initializers: tuple[onnx.TensorProto, ...]
    sparse_initializers: tuple[onnx.SparseTensorProto, ...]
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """Count that trims an output, by the output's name; counts are outputs, too."""
    sizes: tuple[str, ...] = ()
    """Inputs whose values are sizes."""


def stage_model(
    model: onnx.ModelProto,
    stage: Stage,
    arrays: Mapping[str, Array] | None,
    known: Mapping[str, Sizes],
) -> onnx.ModelProto:
    """Returns a segment as a separate model.

    Args:
        arrays: examples of the segment's inputs, and of inputs that pass sizes (see `size_input`);
            `None` for a first segment, whose inputs are the model's.
        known: sizes of the model's tensors that are the same in every run; all other dimensions are
            symbolic.
    """
    graph = onnx.GraphProto(name=model.graph.name)
    declared = {value.name: value for value in model.graph.input}
    for name in stage.inputs:
        if arrays is not None and size_input(name, 0) in arrays:
            _take_sizes(graph, name, arrays[name])
        elif arrays is None or name in declared:
            graph.input.append(declared[name])
        else:
            graph.input.append(_open_input(name, arrays[name], known.get(name)))
    graph.node.extend(stage.nodes)
    graph.initializer.extend(stage.initializers)
    graph.sparse_initializer.extend(stage.sparse_initializers)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in stage.outputs)
    result = onnx.ModelProto(ir_version=model.ir_version, graph=graph)
    result.opset_import.extend(model.opset_import)
    result.opset_import.append(helper.make_opsetid(STAGE_DOMAIN, 1))
    result.functions.extend(model.functions)
    return result


def _open_input(name: str, array: Any, known: Sizes | None) -> onnx.ValueInfoProto:
    if isinstance(array, list):  # a sequence of strings, between parts that are interpreted
        return onnx.ValueInfoProto(name=name)
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    fixed = known if known is not None and len(known) == array.ndim else (None,) * array.ndim
    shape = [
        f"{name}[{axis}]" if size != array.shape[axis] else size for axis, size in enumerate(fixed)
    ]
    return helper.make_tensor_value_info(name, element_type, shape)


def _take_sizes(graph: onnx.GraphProto, name: str, array: Array) -> None:
    """Defines the tensor `name` by the shapes of new inputs, so that its elements become
    symbols.
    """
    inputs = [size_input(name, number) for number in range(array.size)]
    graph.input.extend(
        helper.make_tensor_value_info(each, onnx.TensorProto.UINT8, [0, each]) for each in inputs
    )
    node = helper.make_node("Sizes", inputs, [name], name, domain=STAGE_DOMAIN)
    node.attribute.append(helper.make_attribute("shape", array.shape, attr_type=_INTEGERS))
    type_ = helper.np_dtype_to_tensor_dtype(array.dtype)
    node.attribute.append(helper.make_attribute("to", type_))
    graph.node.append(node)
