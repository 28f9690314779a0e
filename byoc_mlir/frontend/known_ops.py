"""What can be said of a model's nodes before the shapes of its inputs are known."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx.defs import OpSchema

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.graphs import called_function, function_key, standard_name
from byoc_mlir.frontend.order import names_of
from byoc_mlir.frontend.registry import OnnxOp, find_op
from byoc_mlir.frontend.schema import check_node, op_schema, versions_of
from byoc_mlir.frontend.signatures import misfit

ONNX_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""The domains of the standard, whose ops are all known."""


def check_nodes(model: onnx.ModelProto) -> None:
    """Refuses nodes of the main graph that no shape can make right.

    Raises:
        InvalidModelError: a node does not fit its op's schema.
        UnsupportedModelError: there is no such op, or a node does not fit the function of an op
            without schema; all nodes of that sort are listed.
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
    """Returns why a node of an op without schema is refused; `None` when it fits its function."""
    op = function_of(node, opset)
    return unknown_op(node, opset) if op is None else misfit(op, node)


def node_schema(node: onnx.NodeProto, opset: int) -> OpSchema | None:
    """Returns the schema of a node that calls no function of the model, `None` without one."""
    return None if node.overload else op_schema(standard_name(node.domain), node.op_type, opset)


def function_of(node: onnx.NodeProto, opset: int) -> OnnxOp | None:
    """Returns the function that imports a node; `None` where the opset does not have its op."""
    if node.overload or (is_standard(node) and node_schema(node, opset) is None):
        return None
    return find_op(standard_name(node.domain), node.op_type, opset)


def is_standard(node: onnx.NodeProto) -> bool:
    """True if some version of the ONNX standard has the op."""
    return onnx.defs.has(node.op_type, standard_name(node.domain))


def unknown_op(node: onnx.NodeProto, opset: int) -> str:
    """Returns why an op without schema, function and body is refused."""
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
