"""Checks of a node against its op's schema: numbers of inputs and outputs, attributes, types."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto
from onnx.defs import OpSchema, SchemaError

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.value import AbsentValue, SequenceValue, Value


@lru_cache(maxsize=4096)
def op_schema(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """Returns the schema of an op, in the version that an opset has.

    Returns `None` if the opset does not have the op, or has deprecated it.
    """
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except SchemaError:
        return None
    return None if schema.deprecated else schema


def versions_of(domain: str, op_type: str) -> str:
    """Returns the opset versions that have an op of the standard, as text."""
    every = onnx.defs.get_all_schemas_with_history()
    found = [one for one in every if (one.domain, one.name) == (domain, op_type)]
    since = min(one.since_version for one in found if not one.deprecated)
    ends = [one.since_version for one in found if one.deprecated and one.since_version > since]
    return f"{since} to {min(ends) - 1}" if ends else f"from {since} on"


def check_node(node: onnx.NodeProto, name: str, schema: OpSchema) -> None:
    """Checks a node against its schema, without types.

    Raises:
        InvalidModelError: the message names the found and the accepted form.
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
        accepted = str(declared.type).removeprefix("AttrType.")
        raise InvalidModelError(
            f"{where}: attribute '{attribute.name}' is {kind}, accepted is {accepted}"
        )


def check_types(
    node: onnx.NodeProto,
    name: str,
    schema: OpSchema,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None] = (),
) -> None:
    """Checks the types of a node's operands and results against its schema.

    A schema's type variable stands for one type in all operands and results that have it.

    Raises:
        InvalidModelError: the message names the input or output, and the found and the accepted
            types.
    """
    read, made = _formals(schema)
    if node.op_type in _ANY_RESULT:
        made = ()
    bound: dict[str, str] = {}
    every = [("input", read, at, value) for at, value in enumerate(inputs)]
    every += [("output", made, at, value) for at, value in enumerate(outputs)]
    for what, formals, index, value in every:
        if value is None or not formals:
            continue
        formal = formals[min(index, len(formals) - 1)]
        found = _SEQUENCE if isinstance(value, SequenceValue) else _tensor_type(value.dtype)
        found = _OPTIONAL if isinstance(value, AbsentValue) else found
        wanted = bound.setdefault(formal.variable, found) if formal.is_tied else found
        if found not in formal.accepted:
            accepted = f"accepted are {', '.join(sorted(formal.accepted))}"
        elif found != wanted:
            accepted = f"accepted is {wanted}, as for the values before it"
        else:
            continue
        raise InvalidModelError(
            f"node '{name}' ({node.op_type}): {what} '{formal.name}' is {found}, {accepted}"
        )


_ANY_RESULT = frozenset({"Constant"})
"""Ops whose results may have any type: before opset 9, the schema has floats alone, but exporters
wrote the integers of shapes, too."""

_SEQUENCE = "a sequence"
_OPTIONAL = "an optional without an element"


@dataclass(frozen=True)
class _Formal:
    """Input or output of a schema."""

    name: str
    accepted: frozenset[str]
    """Accepted types; for sequences and empty optionals, only the kind without element types."""
    variable: str
    is_tied: bool
    """True if all operands with the type variable have the same type."""


@lru_cache(maxsize=4096)
def _formals(schema: OpSchema) -> tuple[tuple[_Formal, ...], tuple[_Formal, ...]]:
    """Returns the inputs and the outputs of a schema."""
    return tuple(map(_formal, schema.inputs)), tuple(map(_formal, schema.outputs))


def _formal(formal: OpSchema.FormalParameter) -> _Formal:
    kinds = frozenset(kind for type_ in formal.types for kind in _kinds(type_))
    return _Formal(formal.name, kinds, formal.type_str, formal.is_homogeneous)


def _kinds(type_: str) -> tuple[str, ...]:
    """Returns the element types that a type of a schema accepts.

    An optional with an element counts as the element, and a map as the tensor of its values.
    """
    if type_.startswith("seq(map("):
        return ("tensor(float)",)
    if type_.startswith("optional("):
        return (_OPTIONAL, *_kinds(type_[len("optional(") : -1]))
    return (_SEQUENCE,) if type_.startswith("seq(") else (type_,)


@lru_cache(maxsize=64)
def _tensor_type(dtype: np.dtype[Any]) -> str:
    element_type = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return f"tensor({TensorProto.DataType.Name(element_type).lower()})"


def check_strings(node: onnx.NodeProto, schema: OpSchema, strings: Set[str]) -> None:
    """Checks that a node has strings only where its op accepts strings.

    Args:
        strings: names of tensors of strings, and of sequences of such tensors.

    Raises:
        InvalidModelError: the message names the input or output, and the accepted types.
    """
    for what, formals, names in (
        ("input", schema.inputs, node.input),
        ("output", schema.outputs, node.output),
    ):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]
            if name in strings and not any("tensor(string)" in type_ for type_ in formal.types):
                accepted = ", ".join(sorted(formal.types))
                raise InvalidModelError(
                    f"node '{node.name}' ({node.op_type}): {what} '{formal.name}' is of strings,"
                    f" accepted are {accepted}"
                )
