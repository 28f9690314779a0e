"""What can be said of a model's nodes before the shapes of its inputs are known."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.order import names_of
from byoc_mlir.frontend.registry import find_op
from byoc_mlir.frontend.schema import check_node, op_schema
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
    functions = {(function.domain, function.name) for function in model.functions}
    opsets = opset_versions(model)
    problems: list[NodeProblem] = []
    nodes: Sequence[onnx.NodeProto] = model.graph.node
    for node, name in zip(nodes, names_of(nodes), strict=True):
        domain = standard_name(node.domain)
        opset = opsets.get(domain)
        if (domain, node.op_type) in functions or opset is None:
            continue
        schema = op_schema(domain, node.op_type, opset)
        if schema is not None:
            check_node(node, name, schema)
        elif reason := unfit_without_schema(node, opset):
            problems.append(NodeProblem(name, node.op_type, domain, reason))
    if problems:
        raise UnsupportedModelError(problems)


def standard_name(domain: str) -> str:
    """The name of a domain; the default one is empty."""
    return "" if domain == "ai.onnx" else domain


def unfit_without_schema(node: onnx.NodeProto, opset: int) -> str | None:
    """Why a node of an op without schema is refused; `None` when it fits its function."""
    domain = standard_name(node.domain)
    op = find_op(domain, node.op_type, opset)
    return unknown_op(domain, opset) if op is None else misfit(op, node)


def unknown_op(domain: str, opset: int) -> str:
    """Why an op without schema, function and body is refused."""
    if domain in ONNX_DOMAINS:
        return f"there is no such op in opset {opset} of the domain"
    return (
        f"not supported: domain '{domain}' has no such op here; export the model without it, with a"
        " function for it, or register an importer of your own (byoc_mlir.frontend.register_op)"
    )
