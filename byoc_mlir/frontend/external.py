"""Nodes without a counterpart in the IR, carried along for the fallback interpreter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx
from onnx import numpy_helper
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceError, infer_node_outputs
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend.block_builder import BlockBuilder
from byoc_mlir.frontend.graphs import standard_name
from byoc_mlir.frontend.value import SequenceValue, Value

_RANDOM = frozenset({"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"})

MAX_BYTES = 4 << 30
"""Largest output in bytes."""

MAX_KNOWN_ELEMENTS = 1024
"""Largest constant that ONNX's shape inference sees, in elements."""


def external_node(
    node: onnx.NodeProto,
    name: str,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
    builder: BlockBuilder,
    reason: str,
) -> list[Value | None] | None:
    """Adds a `relay.onnx_node`, if the node's outputs are tensors of static shape.

    Args:
        reason: why there is no native code for the node.

    Returns:
        The node's outputs, `None` for each omitted one; or `None` if the node cannot be carried
        along.
    """
    if any(isinstance(value, SequenceValue) for value in inputs) or has_graphs(node):
        return None
    types = _output_types(node, schema, opsets, inputs)
    if types is None:
        return None
    operands = [builder.operand(value) for value in inputs if value is not None]
    op = OnnxNodeOp.of(node, opsets[standard_name(node.domain)], operands, types, reason)
    builder.append(op, node_location(name))
    results = iter(op.results)
    return [Value(name, next(results)) if output else None for output in node.output]


def is_random(node: onnx.NodeProto) -> bool:
    """True if the result of a standard op differs from run to run."""
    return node.op_type.removesuffix("Like") in _RANDOM


def has_graphs(node: onnx.NodeProto) -> bool:
    """True if the node has branches or a body."""
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return any(attribute.type in graphs for attribute in node.attribute)


def _output_types(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> list[Attribute] | None:
    try:
        inferred = inferred_types(node, schema, opsets, inputs)
        return [_static_type(inferred[name]) for name in node.output if name]
    except (InferenceError, ValidationError, ByocError, KeyError, ValueError):
        return None


def invalid_by_onnx(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> str | None:
    """Returns the error of ONNX's own inference for a node; `None` if the node is valid."""
    if any(isinstance(value, SequenceValue) for value in inputs):
        return None
    try:
        inferred_types(node, schema, opsets, inputs)
    except (InferenceError, ValidationError, ValueError) as error:
        return str(error)
    return None


def inferred_types(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> dict[str, onnx.TypeProto]:
    """Returns the types of the outputs by ONNX's inference; all inputs must be tensors.

    Raises:
        InferenceError, ValidationError, ValueError: the node is not valid.
    """
    named = {name: v for name, v in zip(node.input, inputs, strict=False) if v is not None}
    types = {
        name: onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in named.items()
    }
    data = {
        name: numpy_helper.from_array(value.constant, name)
        for name, value in named.items()
        if value.constant is not None and value.constant.size <= MAX_KNOWN_ELEMENTS
    }
    versions = [onnx.helper.make_opsetid(d, version) for d, version in opsets.items()]
    return infer_node_outputs(schema, node, types, data, opset_imports=versions)


def _static_type(type_: onnx.TypeProto) -> Attribute:
    tensor = type_.tensor_type
    if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
        raise ValueError("the shape is not known")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if math.prod(dim.dim_value for dim in tensor.shape.dim) * dtype.itemsize > MAX_BYTES:
        raise ValueError("the result is too large")
    return TensorType(relay_type(dtype), [dim.dim_value for dim in tensor.shape.dim])
