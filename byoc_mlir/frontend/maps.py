"""Inputs that are maps, replaced by the tensors that `ai.onnx.ml` ops create from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import onnx
from onnx import NodeProto, TensorProto, helper

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.attributes import text_of
from byoc_mlir.frontend.graphs import with_nodes
from byoc_mlir.tensors import MapRow

_ML = "ai.onnx.ml"
_CASTS: Mapping[str, int] = {"TO_FLOAT": TensorProto.FLOAT, "TO_INT64": TensorProto.INT64}


def map_rows(model: onnx.ModelProto) -> dict[str, tuple[MapRow, ...]]:
    """Returns the tensors that DictVectorizer and CastMap create from each input that is a map.

    Raises:
        UnsupportedModelError: another op reads a map, or an op's attributes are not supported.
    """
    maps = {value.name: value.type.map_type for value in model.graph.input if _is_map(value)}
    found: defaultdict[str, list[MapRow]] = defaultdict(list)
    for node in model.graph.node:
        for name in maps.keys() & set(node.input):
            found[name].append(_row(node, maps[name]))
    return {name: tuple(found[name]) for name in maps}


def without_maps(model: onnx.ModelProto, rows: Mapping[str, Sequence[MapRow]]) -> onnx.ModelProto:
    """Returns the model with these tensors as inputs, instead of the maps."""
    if not rows:
        return model
    result = deepcopy(model)
    del result.graph.input[:]
    for value in model.graph.input:
        tensors = [_tensor(row) for row in rows[value.name]] if value.name in rows else [value]
        result.graph.input.extend(tensors)
    return with_nodes(
        result, (node for node in model.graph.node if not rows.keys() & set(node.input))
    )


def _is_map(value: onnx.ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") == "map_type"


def _tensor(row: MapRow) -> onnx.ValueInfoProto:
    element_type = helper.np_dtype_to_tensor_dtype(row.dtype)
    width = None if row.keys is None else len(row.keys)
    return helper.make_tensor_value_info(row.name, element_type, [1, width])


def _row(node: NodeProto, type_: onnx.TypeProto.Map) -> MapRow:
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    match node.domain, node.op_type:
        case "ai.onnx.ml", "DictVectorizer":
            return _vector(node, type_, given)
        case "ai.onnx.ml", "CastMap":
            return _cast(node, given)
        case _:
            raise _refused(node, "it reads a map; accepted are DictVectorizer and CastMap")


def _vector(node: NodeProto, type_: onnx.TypeProto.Map, given: Mapping[str, Any]) -> MapRow:
    texts: Sequence[bytes] = given.get("string_vocabulary", ())
    keys = tuple(given.get("int64_vocabulary", ())) or tuple(map(text_of, texts))
    if len(set(keys)) != len(keys):
        raise _refused(node, f"the vocabulary has {len(keys)} keys, some of them twice")
    element_type = type_.value_type.tensor_type.elem_type
    return MapRow(node.output[0], helper.tensor_dtype_to_np_dtype(element_type), keys)


def _cast(node: NodeProto, given: Mapping[str, Any]) -> MapRow:
    to, form = (text_of(given.get(name, b"")) for name in ("cast_to", "map_form"))
    if (to or "TO_FLOAT") not in _CASTS or form not in ("", "DENSE", "SPARSE"):
        raise _refused(
            node,
            f"cast_to is '{to}' and map_form '{form}'; accepted are {', '.join(_CASTS)}, and DENSE"
            " or SPARSE",
        )
    dtype = helper.tensor_dtype_to_np_dtype(_CASTS[to or "TO_FLOAT"])
    keys = range(given.get("max_map", 1)) if form == "SPARSE" else None
    return MapRow(node.output[0], dtype, keys)


def _refused(node: NodeProto, reason: str) -> UnsupportedModelError:
    name = node.name or node.output[0]
    return UnsupportedModelError([NodeProblem(name, node.op_type, node.domain, reason)])
