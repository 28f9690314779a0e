"""One part of a model that runs in several, and the model that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from byoc_mlir.frontend.inferred import Sizes
from byoc_mlir.frontend.value import Array
from byoc_mlir.tensors import Trim, size_input

STAGE_DOMAIN = "byoc"
"""Domain of the ops at the ends of stages: see `ops.bounded`."""

_INTEGERS = onnx.AttributeProto.INTS


@dataclass(frozen=True)
class Stage:
    """One part of a model: names it reads and gives, and its nodes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[onnx.NodeProto, ...]
    initializers: tuple[onnx.TensorProto, ...]
    sparse_initializers: tuple[onnx.SparseTensorProto, ...]
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """Of outputs; counts are outputs, too."""
    sizes: tuple[str, ...] = ()
    """Inputs whose values are sizes."""


def stage_model(
    model: onnx.ModelProto,
    stage: Stage,
    arrays: Mapping[str, Array] | None,
    known: Mapping[str, Sizes],
) -> onnx.ModelProto:
    """A stage as a model of its own.

    Args:
        arrays: what its inputs are like, and those that carry sizes (see `size_input`); `None` for
            a first stage that takes the model's own.
        known: the sizes of the model's tensors that never change; those of other dimensions change
            from run to run, so that they stay open.
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


def standard_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node of ONNX that `split` made one at the end of a stage of; other nodes are their own.

    ```text
    n, n:count = byoc.NonZero (x)
    // is made of
    n = NonZero (x)
    ```
    """
    if node.domain != STAGE_DOMAIN or node.op_type == "Sizes":
        return node
    made_of = onnx.NodeProto()
    made_of.CopyFrom(node)
    made_of.domain = ""
    del made_of.output[-1]
    return made_of


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
    """The tensor `name` as what the shapes of some inputs say: its elements are symbols."""
    inputs = [size_input(name, number) for number in range(array.size)]
    graph.input.extend(
        helper.make_tensor_value_info(each, onnx.TensorProto.UINT8, [0, each]) for each in inputs
    )
    node = helper.make_node("Sizes", inputs, [name], name, domain=STAGE_DOMAIN)
    node.attribute.append(helper.make_attribute("shape", array.shape, attr_type=_INTEGERS))
    type_ = helper.np_dtype_to_tensor_dtype(array.dtype)
    node.attribute.append(helper.make_attribute("to", type_))
    graph.node.append(node)
