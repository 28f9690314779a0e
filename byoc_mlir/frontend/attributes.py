"""The attributes of ONNX nodes as Python values, checked against the op's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto

from byoc_mlir.frontend.tensors import tensor_array

_READERS: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.FLOAT: lambda attribute: attribute.f,
    AttributeProto.INT: lambda attribute: attribute.i,
    AttributeProto.STRING: lambda attribute: attribute.s.decode("utf-8", "replace"),
    AttributeProto.TENSOR: lambda attribute: tensor_array(attribute.t),
    AttributeProto.FLOATS: lambda attribute: tuple(attribute.floats),
    AttributeProto.INTS: lambda attribute: tuple(attribute.ints),
    AttributeProto.STRINGS: lambda attribute: tuple(
        item.decode("utf-8", "replace") for item in attribute.strings
    ),
    AttributeProto.GRAPH: lambda attribute: attribute.g,
}


def node_attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes by name: numbers, strings, tuples of them, arrays, graphs."""
    return {attribute.name: _READERS[attribute.type](attribute) for attribute in node.attribute}
