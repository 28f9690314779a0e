"""Ops that functions define: function bodies of the ONNX standard, and functions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dims import Size
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.graphs import attribute_of, graphs_of
from byoc_mlir.frontend.value import SequenceValue, Value


def standard_function(
    node: onnx.NodeProto, op: OpSchema, opset: int, inputs: Sequence[Value | None]
) -> onnx.FunctionProto | None:
    """Returns the function body that the ONNX standard gives an op, or `None`.

    Of several bodies, the newest one whose ops the opset has is returned, else the oldest one.

    Raises:
        InvalidModelError: the node names an axis that its first operand does not have, or ONNX
            makes no body for it.
    """
    schema: Any = op  # onnx's type stubs lack its functions
    _check_axis(node, inputs)
    if schema.has_function:
        version = _best(schema.function_opset_versions, opset)
        return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(version))
    if not schema.has_context_dependent_function:
        return None
    version = _best(schema.context_dependent_function_opset_versions, opset)
    types = [_type_proto(value).SerializeToString() for value in inputs]
    try:
        data = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    except (ValueError, IndexError, RuntimeError) as error:
        raise InvalidModelError(f"node '{node.name}' ({node.op_type}): {error}") from error
    return onnx.FunctionProto.FromString(data) if data else None


def _check_axis(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> None:
    """Checks a node's `axis`, which function bodies do not check."""
    data = inputs[0] if inputs else None
    axis = attribute_of(node, "axis")
    if data is None or isinstance(data, SequenceValue) or not axis.name:
        return
    try:
        normalize_axis(axis.i, data.rank)
    except VerifyException as error:
        raise InvalidModelError(f"node '{node.name}' ({node.op_type}): {error}") from error


def unfit_operands(op_type: str, inputs: Sequence[Value | None]) -> str:
    """Returns why operands do not fit an op whose body would accept them anyway, or ""."""
    if op_type not in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
        return ""
    scores, *others = [value for value in inputs if isinstance(value, Value)]
    if scores.rank < 2:
        return f"the scores have shape {list(scores.sizes)}, accepted is a rank of at least 2"
    samples, classes, *places = scores.sizes
    accepted = ("labels", [samples, *places]), ("weights", [classes])
    for (name, wanted), value in zip(accepted, others, strict=False):
        if value.rank != len(wanted) or any(map(_differ, value.sizes, wanted)):
            return f"the {name} have shape {list(value.sizes)}, accepted is {wanted}"
    return ""


def _differ(one: Size, two: Size) -> bool:
    return isinstance(one, int) and isinstance(two, int) and one != two


def _best(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=min(versions))


def _type_proto(value: Value | None) -> onnx.TypeProto:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, SequenceValue):
        item = value.items[0] if value.items else Value("item", np.zeros(0, np.float32))
        return onnx.helper.make_sequence_type_proto(_type_proto(item))
    element_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    sizes = [size if isinstance(size, int) else str(size) for size in value.sizes]
    return onnx.helper.make_tensor_type_proto(element_type, sizes)


def call_attributes(
    call: onnx.NodeProto, body: onnx.FunctionProto, op: OpSchema | None
) -> dict[str, AttributeProto]:
    """Returns the attributes for a function's body: from the call, or else the function's
    defaults.
    """
    declared = [] if op is None else [item.default_value for item in op.attributes.values()]
    given = {attribute.name: attribute for attribute in declared if attribute.name}
    given.update((attribute.name, attribute) for attribute in body.attribute_proto)
    given.update((attribute.name, attribute) for attribute in call.attribute)
    return given


def bound_node(
    inner: onnx.NodeProto, given: Mapping[str, AttributeProto], absent: Set[str]
) -> onnx.NodeProto:
    """Returns a node of a function's body, with the call's attributes in place of references.

    Inputs that the call omits (`absent`) are omitted from the node as well.
    """
    bound = deepcopy(inner)
    _bind(bound, given, absent)
    return bound


def _bind(node: onnx.NodeProto, given: Mapping[str, AttributeProto], absent: Set[str]) -> None:
    for index, name in enumerate(node.input):
        if name in absent:
            node.input[index] = ""
    attributes = list(node.attribute)
    del node.attribute[:]
    for attribute in attributes:
        if not attribute.ref_attr_name:
            for inner in (inner for graph in graphs_of(attribute) for inner in graph.node):
                _bind(inner, given, absent)
            node.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = node.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
