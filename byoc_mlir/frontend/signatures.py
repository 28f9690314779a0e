"""Whether a node fits the function that imports it, for ops without a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import onnx
from onnx import AttributeProto

from byoc_mlir.frontend.registry import OnnxOp
from byoc_mlir.frontend.value import Array

_KINDS: Mapping[Any, str] = {
    int: "INT",
    float: "FLOAT",
    str: "STRING",
    Sequence[int]: "INTS",
    Sequence[float]: "FLOATS",
    Sequence[str]: "STRINGS",
    Array: "TENSOR",
    onnx.GraphProto: "GRAPH",
}


@dataclass(frozen=True)
class _Formals:
    """What a function accepts."""

    inputs: Mapping[str, bool]
    """Those with a name: whether they are required."""
    has_more: bool
    """Whether there may be any number of inputs behind them."""
    attributes: Mapping[str, frozenset[str]]
    """The kinds that each may have; empty where the annotation does not say."""
    required: frozenset[str]
    """The attributes that must be given."""


def misfit(op: OnnxOp, node: onnx.NodeProto) -> str | None:
    """Why a node does not fit its function: its inputs, the names or kinds of its attributes.

    Returns:
        A reason, `None` when it fits.
    """
    formals = _formals(op)
    if not formals.has_more and len(node.input) > len(formals.inputs):
        return f"it has {len(node.input)} inputs, accepted are up to {len(formals.inputs)}"
    for index, (name, is_required) in enumerate(formals.inputs.items()):
        if is_required and (index >= len(node.input) or not node.input[index]):
            return f"input '{name}' is required"
    given = {attribute.name for attribute in node.attribute}
    for name in sorted(formals.required - given):
        return f"the attribute '{name}' is required"
    return next(filter(None, (_unfit(each, formals) for each in node.attribute)), None)


def _unfit(attribute: AttributeProto, formals: _Formals) -> str | None:
    accepted = formals.attributes.get(attribute.name)
    if accepted is None:
        known = ", ".join(sorted(formals.attributes)) or "none"
        return f"attribute '{attribute.name}' is not supported, accepted are {known}"
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if accepted and kind not in accepted:
        return (
            f"attribute '{attribute.name}' is {kind}, accepted is {' or '.join(sorted(accepted))}"
        )
    return None


@lru_cache(maxsize=1024)
def _formals(op: OnnxOp) -> _Formals:
    _, *parameters = op.signature.parameters.values()
    inputs = [each for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    attributes = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    hints = _hints(op)
    return _Formals(
        {each.name: not _may_be_absent(each, hints) for each in inputs},
        any(each.kind is Parameter.VAR_POSITIONAL for each in parameters),
        {each.name: _kinds(hints.get(each.name)) for each in attributes},
        frozenset(each.name for each in attributes if each.default is Parameter.empty),
    )


def _may_be_absent(parameter: Parameter, hints: Mapping[str, Any]) -> bool:
    is_optional = NoneType in get_args(hints.get(parameter.name))
    return is_optional or parameter.default is not Parameter.empty


def _hints(op: OnnxOp) -> Mapping[str, Any]:
    try:
        together = {} if op.attributes is None else get_type_hints(op.attributes)
        return {**get_type_hints(op.function), **together}
    except NameError:  # a name that is only there for type checkers
        return {}


def _kinds(annotation: object) -> frozenset[str]:
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    named = [option for option in options if option is not NoneType]
    if not all(option in _KINDS for option in named):
        return frozenset()
    return frozenset(_KINDS[option] for option in named)
