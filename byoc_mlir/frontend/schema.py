"""Whether a node fits its op's schema: how many inputs and outputs, which attributes."""

from __future__ import annotations

from functools import lru_cache

import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema, SchemaError

from byoc_mlir.errors import InvalidModelError


@lru_cache(maxsize=4096)
def op_schema(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """The schema of an op in the version that an opset has; `None` when there is no such op."""
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except SchemaError:
        return None


def check_node(node: onnx.NodeProto, name: str, schema: OpSchema) -> None:
    """Compares a node with its schema.

    Raises:
        InvalidModelError: with what was found and what the op accepts.
    """
    where = f"node '{name}' ({node.op_type})"
    for what, found, least, most in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= found <= most:
            raise InvalidModelError(
                f"{where}: it has {found} {what}, accepted are {least} to {most}"
            )
    for attribute in node.attribute:
        _check_attribute(attribute, where, schema)
    given = {attribute.name for attribute in node.attribute}
    for required in (item.name for item in schema.attributes.values() if item.required):
        if required not in given:
            raise InvalidModelError(f"{where}: the attribute '{required}' is required")
    for index, formal in enumerate(schema.inputs):
        is_single = formal.option == OpSchema.FormalParameterOption.Single
        if is_single and (index >= len(node.input) or not node.input[index]):
            raise InvalidModelError(f"{where}: input '{formal.name}' is required")


def _check_attribute(attribute: AttributeProto, where: str, schema: OpSchema) -> None:
    declared = schema.attributes.get(attribute.name)
    if declared is None:
        known = ", ".join(sorted(schema.attributes)) or "none"
        raise InvalidModelError(
            f"{where}: there is no attribute '{attribute.name}', accepted are {known}"
        )
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if declared.type != getattr(OpSchema.AttrType, kind, None):
        raise InvalidModelError(
            f"{where}: attribute '{attribute.name}' is {kind}, accepted is {declared.type}"
        )
