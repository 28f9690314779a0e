"""Models with sequence and optional inputs, as models of tensors.

The length of a sequence, and the presence of an optional, are only known at run time. For each such
structure, the model is rewritten so that each tensor is an input: `s[0]`, `s[1]`, …
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import onnx
from onnx import helper

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.attributes import text_of
from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.tensors import Kind, Structure, item_name

_KINDS: Mapping[str | None, Kind] = {
    "tensor_type": "tensor",
    "sequence_type": "sequence",
    "optional_type": "optional",
    "map_type": "map",
    None: "tensor",
}


def kind_of(type_: onnx.TypeProto) -> Kind:
    """Returns the kind of a type: tensor, sequence, optional or map; an undeclared type counts as a
    tensor.

    Raises:
        UnsupportedModelError: the type is a sparse tensor, or a sequence of sequences.
    """
    declared = type_.WhichOneof("value")
    kind = _KINDS.get(declared)
    inner: Kind = "tensor"
    if kind == "map":
        return "map"
    if kind == "sequence" and type_.sequence_type.elem_type.HasField("map_type"):
        return "maps"
    if kind == "sequence":
        inner = kind_of(type_.sequence_type.elem_type)
    elif kind == "optional":
        inner = kind_of(type_.optional_type.elem_type)
    if kind == "optional" and inner == "sequence":
        return "optional sequence"
    if kind is None or inner != "tensor":
        reason = f"values of {declared} are not supported, nor sequences of sequences"
        raise UnsupportedModelError([NodeProblem(declared or "", "input or output", "", reason)])
    return kind


def tensor_type_of(type_: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """Returns the type of the tensors that make up a value."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            return tensor_type_of(type_.sequence_type.elem_type)
        case "optional_type":
            return tensor_type_of(type_.optional_type.elem_type)
        case "map_type":
            return tensor_type_of(type_.map_type.value_type)
        case _:
            return type_.tensor_type


def output_kinds(model: onnx.ModelProto) -> dict[str, Kind]:
    """Returns the kind of each output, by name and in order.

    Raises:
        UnsupportedModelError: an output is a map.
    """
    outputs = model.graph.output
    kinds: dict[str, Kind] = {output.name: kind_of(output.type) for output in outputs}
    single = [name for name, kind in kinds.items() if kind == "map"]
    reason = "an output that is a map is not supported; accepted are sequences of maps"
    if single:
        raise UnsupportedModelError([NodeProblem(name, "output", "", reason) for name in single])
    return kinds


def map_keys(model: onnx.ModelProto) -> dict[str, tuple[int, ...] | tuple[str, ...]]:
    """Returns the keys of each output that is a sequence of maps, from its ZipMap.

    Raises:
        UnsupportedModelError: an op other than ZipMap computes such an output.
    """
    names = [output.name for output in model.graph.output if kind_of(output.type) == "maps"]
    makers = {output: node for node in model.graph.node for output in node.output}
    found: dict[str, tuple[int, ...] | tuple[str, ...]] = {}
    for name in names:
        node = makers.get(name)
        if node is None or (node.domain, node.op_type) != ("ai.onnx.ml", "ZipMap"):
            reason = "a sequence of maps must come from ZipMap"
            raise UnsupportedModelError([NodeProblem(name, "output", "", reason)])
        found[name] = _keys(node)
    return found


def _keys(node: onnx.NodeProto) -> tuple[int, ...] | tuple[str, ...]:
    numbers = attribute_of(node, "classlabels_int64s")
    if numbers.name:
        return tuple(numbers.ints)
    return tuple(map(text_of, attribute_of(node, "classlabels_strings").strings))


def is_structured(model: onnx.ModelProto) -> bool:
    """True if an input or output is a sequence, an optional or a map."""
    values = (*model.graph.input, *model.graph.output)
    return any(kind_of(value.type) != "tensor" for value in values)


def flattened_model(model: onnx.ModelProto, structures: Mapping[str, Structure]) -> onnx.ModelProto:
    """Returns the model with tensor inputs only; nodes at its start combine them to the
    structures.

    Args:
        structures: the structure of each input that is a sequence or an optional.
    """
    result = deepcopy(model)
    graph = result.graph
    del graph.input[:], graph.node[:]
    for formal in model.graph.input:
        if formal.name in structures:
            _take_apart(graph, formal.name, formal.type, structures[formal.name])
        else:
            graph.input.append(formal)
    graph.node.extend(model.graph.node)
    return result


def _take_apart(
    graph: onnx.GraphProto, name: str, type_: onnx.TypeProto, structure: Structure
) -> None:
    """Adds the inputs for the tensors of the value `name`, and the nodes that build the value from
    them.
    """
    if type_.HasField("optional_type"):
        inner = type_.optional_type.elem_type
        if structure is None:
            graph.node.append(helper.make_node("Optional", [], [name], name=name, type=inner))
        else:
            _take_apart(graph, name, inner, structure)
    elif isinstance(structure, tuple):
        inner = type_.sequence_type.elem_type
        names = [item_name(name, number) for number in range(len(structure))]
        for item, part in zip(names, structure, strict=True):
            _take_apart(graph, item, inner, part)
        node = helper.make_node("SequenceConstruct", names, [name], name=name)
        if not names:
            dtype = inner.tensor_type.elem_type
            node = helper.make_node("SequenceEmpty", [], [name], name=name, dtype=dtype)
        graph.node.append(node)
    else:
        assert structure is not None
        element_type = type_.tensor_type.elem_type
        shape = [None] * structure
        graph.input.append(helper.make_tensor_value_info(name, element_type, shape))
