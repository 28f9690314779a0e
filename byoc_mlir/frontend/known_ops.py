"""Checks of nodes that need no shapes: the op has an importing function, and the node fits its
parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.graphs import called_function, function_key, standard_name
from byoc_mlir.frontend.order import names_of
from byoc_mlir.frontend.registry import OnnxOp, find_op
from byoc_mlir.frontend.schema import check_node, op_schema, versions_of
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
    """Inputs and attributes that an importing function accepts."""

    inputs: Mapping[str, bool]
    """Named inputs; True if an input is required."""
    has_more: bool
    """True if any number of inputs may follow the named ones."""
    attributes: Mapping[str, frozenset[str]]
    """Accepted kinds of each attribute; empty if the annotation does not restrict them."""
    required: frozenset[str]
    """Attributes that are required."""


def misfit(op: OnnxOp, node: onnx.NodeProto) -> str | None:
    """Returns why a node does not fit its importing function; `None` if it fits.

    Compared are the number of inputs, and the names and kinds of attributes.
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


ONNX_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""Domains of the standard, whose ops are all known."""


def check_nodes(model: onnx.ModelProto) -> None:
    """Refuses nodes of the main graph that are wrong for any shape.

    Raises:
        InvalidModelError: a node does not fit its op's schema.
        UnsupportedModelError: an op is unknown, or has no schema and the node does not fit its
            importing function; all such nodes are listed.
    """
    functions = set(map(function_key, model.functions))
    opsets = opset_versions(model)
    problems: list[NodeProblem] = []
    nodes: Sequence[onnx.NodeProto] = model.graph.node
    for node, name in zip(nodes, names_of(nodes), strict=True):
        opset = opsets.get(standard_name(node.domain))
        if called_function(node) in functions or opset is None:
            continue
        schema = node_schema(node, opset)
        if schema is not None:
            check_node(node, name, schema)
        elif reason := unfit_without_schema(node, opset):
            problems.append(NodeProblem(name, node.op_type, standard_name(node.domain), reason))
    if problems:
        raise UnsupportedModelError(problems)


def unfit_without_schema(node: onnx.NodeProto, opset: int) -> str | None:
    """Returns why a node is refused whose op has no schema; `None` if the node fits its importing
    function.
    """
    op = function_of(node, opset)
    return unknown_op(node, opset) if op is None else misfit(op, node)


def node_schema(node: onnx.NodeProto, opset: int) -> OpSchema | None:
    """Returns the schema of a node's op; `None` if it has none, or if the node calls a function of
    the model.
    """
    return None if node.overload else op_schema(standard_name(node.domain), node.op_type, opset)


def function_of(node: onnx.NodeProto, opset: int) -> OnnxOp | None:
    """Returns the function that imports a node, or `None` if the opset does not have the op."""
    if node.overload or (is_standard(node) and node_schema(node, opset) is None):
        return None
    return find_op(standard_name(node.domain), node.op_type, opset)


def is_standard(node: onnx.NodeProto) -> bool:
    """True if some version of the ONNX standard has the op."""
    return onnx.defs.has(node.op_type, standard_name(node.domain))


def unknown_op(node: onnx.NodeProto, opset: int) -> str:
    """Returns why an op is refused that has no schema, no importing function and no body."""
    domain = standard_name(node.domain)
    if node.overload:
        return f"the model has no function '{node.op_type}' with the overload '{node.overload}'"
    if is_standard(node):
        versions = versions_of(domain, node.op_type)
        return (
            f"opset {opset} of the domain does not have the op, opsets {versions} do; export the"
            " model with one of those"
        )
    if domain in ONNX_DOMAINS:
        return f"there is no such op in opset {opset} of the domain"
    return (
        f"not supported: domain '{domain}' has no such op here; export the model without it, with a"
        " function for it, or register an importer of your own (byoc_mlir.frontend.register_op)"
    )


def has_standard_function(op: OpSchema) -> bool:
    """True if the ONNX standard gives the op a body, including one that depends on the inputs."""
    schema: Any = op
    return schema.has_function or schema.has_context_dependent_function
