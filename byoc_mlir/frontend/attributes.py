"""Attributes of ONNX nodes as Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.files.tensors import TensorReader

_READERS: dict[int, Callable[[AttributeProto, TensorReader], Any]] = {
    AttributeProto.FLOAT: lambda attribute, _: attribute.f,
    AttributeProto.FLOATS: lambda attribute, _: tuple(attribute.floats),
    AttributeProto.GRAPH: lambda attribute, _: attribute.g,
    AttributeProto.INT: lambda attribute, _: attribute.i,
    AttributeProto.INTS: lambda attribute, _: tuple(attribute.ints),
    AttributeProto.SPARSE_TENSOR: lambda attribute, reader: reader.dense_array(
        attribute.sparse_tensor
    ),
    AttributeProto.STRING: lambda attribute, _: text_of(attribute.s),
    AttributeProto.STRINGS: lambda attribute, _: tuple(map(text_of, attribute.strings)),
    AttributeProto.TENSOR: lambda attribute, reader: reader.array(attribute.t),
    AttributeProto.TYPE_PROTO: lambda attribute, _: attribute.tp,
}


UNREAD = "consumed_inputs"
"""Name of an ignored attribute: in ONNX's first opsets, it lets results reuse the memory of
operands."""


def node_attributes(node: onnx.NodeProto, reader: TensorReader) -> dict[str, Any]:
    """Returns a node's attributes by name, as Python values; attributes in `UNREAD` are omitted.

    Raises:
        InvalidModelError: an attribute has a kind that no op of the standard has.
    """
    is_standard = node.domain in ("", "ai.onnx")
    return {
        attribute.name: _value(node, attribute, reader)
        for attribute in node.attribute
        if not (is_standard and attribute.name == UNREAD)
    }


def _value(node: onnx.NodeProto, attribute: AttributeProto, reader: TensorReader) -> Any:
    if attribute.type not in _READERS:
        raise InvalidModelError(
            f"node '{node.name}' ({node.op_type}): attribute '{attribute.name}' is of kind"
            f" {attribute.type}, which no op has"
        )
    return _READERS[attribute.type](attribute, reader)


def text_of(data: bytes) -> str:
    """Returns a string of an attribute; bytes that are not UTF-8 become U+FFFD."""
    return data.decode("utf-8", "replace")
