"""Rewriting of ops with strings in attributes to numeric ops and lookups of strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from byoc_mlir.frontend.attributes import text_of
from byoc_mlir.frontend.graphs import attribute_of, with_nodes
from byoc_mlir.frontend.strings import string_names

_ML = "ai.onnx.ml"
_CLASSIFIERS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
"""Attribute with integer labels, by op."""

_LABELS = "classlabels_strings"
REWRITTEN = frozenset({("CategoryMapper", 1), ("LabelEncoder", 1)})
"""Ops of `ai.onnx.ml`, by version, that are rewritten before import."""
_OPSET = 13
"""Opset of ONNX for a model that has only ops of `ai.onnx.ml`."""


def with_looked_up_strings(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with integer labels for classifiers, and a lookup of the strings after each
    one.

    CategoryMapper and the first version of LabelEncoder become LabelEncoder's second version. A
    model without such nodes is returned unchanged.
    """
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if not any(_concerns(node, opsets.get(_ML, 0)) for node in model.graph.node):
        return model
    result = deepcopy(model)
    strings = set(string_names(model))
    nodes: list[NodeProto] = []
    for number, node in enumerate(result.graph.node):
        if not _concerns(node, opsets.get(_ML, 0)):
            nodes.append(node)
        elif node.op_type in _CLASSIFIERS:
            nodes += _numbered(node, result.graph, number)
        else:
            nodes.append(_encoder(node, is_text=node.input[0] in strings))
            result.graph.value_info.append(_info(node, is_text=node.input[0] in strings))
    with_nodes(result, nodes)
    _import_at_least(result, "", _OPSET if "" not in opsets else 1)
    _import_at_least(result, _ML, 2)
    return result


def _concerns(node: NodeProto, opset: int) -> bool:
    if node.domain != _ML or not (node.input and node.output):
        return False  # the import refuses a node without them
    if node.op_type in _CLASSIFIERS:
        return bool(attribute_of(node, _LABELS).strings)
    since = 1 if node.op_type == "CategoryMapper" else opset
    return (node.op_type, since) in REWRITTEN


def _numbered(node: NodeProto, graph: onnx.GraphProto, number: int) -> Iterator[NodeProto]:
    """Yields a classifier with integer labels, and the lookup of its string labels."""
    labels = list(attribute_of(node, _LABELS).strings)
    kept = [each for each in node.attribute if each.name not in (_LABELS, *_CLASSIFIERS.values())]
    del node.attribute[:]
    numbers = helper.make_attribute(_CLASSIFIERS[node.op_type], list(range(len(labels))))
    node.attribute.extend([*kept, numbers])
    table, place, label = f".labels.{number}", f".label.{number}", node.output[0]
    texts = np.array(list(map(text_of, labels)), object)
    graph.initializer.append(numpy_helper.from_array(texts, table))
    node.output[0] = place
    yield node
    yield helper.make_node("Gather", [table, place], [label], f"{node.name}.label", axis=0)


def _encoder(node: NodeProto, *, is_text: bool) -> NodeProto:
    """Returns a CategoryMapper or LabelEncoder as a LabelEncoder of the second version."""
    if node.op_type == "CategoryMapper":
        texts = attribute_of(node, "cats_strings").strings
        numbers: Sequence[int] = attribute_of(node, "cats_int64s").ints
    else:
        texts = attribute_of(node, "classes_strings").strings
        numbers = range(len(texts))
    attributes: dict[str, Any] = {"keys_int64s": list(numbers), "values_strings": list(texts)}
    if is_text:
        attributes = {"keys_strings": list(texts), "values_int64s": list(numbers)}
    attributes = {name: one for name, one in attributes.items() if one}  # an attribute is not empty
    for name in ("default_int64", "default_string"):
        default = attribute_of(node, name)
        if default.name:
            attributes[name] = helper.get_attribute_value(default)
    return helper.make_node(
        "LabelEncoder", list(node.input), list(node.output), node.name, domain=_ML, **attributes
    )


def _info(node: NodeProto, *, is_text: bool) -> onnx.ValueInfoProto:
    """Returns the type of an encoder's output; ONNX's inference does not know it for all
    versions.
    """
    kind = TensorProto.INT64 if is_text else TensorProto.STRING
    return helper.make_tensor_value_info(node.output[0], kind, None)


def _import_at_least(model: onnx.ModelProto, domain: str, version: int) -> None:
    for entry in model.opset_import:
        if entry.domain == domain:
            entry.version = max(entry.version, version)
            return
    model.opset_import.append(helper.make_opsetid(domain, version))
