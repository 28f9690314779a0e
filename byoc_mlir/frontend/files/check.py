"""Checks that precede all other use of a model: versions, names, node order, tensor sizes.

The checks are written in Python, so that a hostile model is refused before C++ code reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto

from byoc_mlir.errors import InvalidModelError, LimitExceededError
from byoc_mlir.frontend.files.tensor_check import check_sparse_tensor, check_tensor
from byoc_mlir.frontend.graphs import (
    FunctionKey,
    called_function,
    function_key,
    subgraphs,
)
from byoc_mlir.frontend.order import ordered_nodes
from byoc_mlir.limits import check_time, current_limits, in_time

MAX_OPSET = onnx.defs.onnx_opset_version()
"""Newest accepted version of the default opset."""


_TENSOR_FIELDS = TensorProto.DESCRIPTOR.fields_by_name


def check_model(model: onnx.ModelProto) -> None:
    """Checks the model, its subgraphs and functions, and every tensor in them.

    Raises:
        InvalidModelError: the message names the node, tensor or version, and what was found.
        LimitExceededError: there are too many nodes, a name is too long, or graphs are nested too
            deeply.
    """
    nodes = _count_nodes(model.graph, 0)  # first, since all else takes longer
    nodes += sum(_count_nodes(function, 0) for function in model.functions)
    current_limits().check("nodes", nodes, "nodes of the model")
    _check_texts(model, current_limits().name_length)
    _check_versions(model)
    _check_graph(model.graph, frozenset())
    _check_functions(model)


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Returns the opset version of each domain; the name of the default domain is empty."""
    versions = {
        "" if entry.domain == "ai.onnx" else entry.domain: entry.version
        for entry in model.opset_import
    }
    return versions if "" in versions or model.ir_version >= 3 else {**versions, "": 1}


def _check_versions(model: onnx.ModelProto) -> None:
    if model.ir_version > onnx.IR_VERSION:
        raise InvalidModelError(
            f"the model has IR version {model.ir_version}, the newest supported is"
            f" {onnx.IR_VERSION}; export it with an older one, or update the package onnx"
        )
    imported = {(entry.domain, entry.version) for entry in model.opset_import}  # also said twice
    domains = Counter(domain for domain, _ in imported)
    repeated = [domain for domain, count in domains.items() if count > 1]
    if repeated:
        raise InvalidModelError(f"opset domain '{repeated[0]}' is imported in several versions")
    version = opset_versions(model).get("")
    if version is not None and not 1 <= version <= MAX_OPSET:
        raise InvalidModelError(
            f"the model uses opset {version}, supported are 1 to {MAX_OPSET}; export it with an"
            " older one, or update the package onnx"
        )


def _check_graph(graph: onnx.GraphProto, outer: Set[str]) -> None:
    for tensor in graph.initializer:
        check_tensor(tensor, f"initializer '{tensor.name}'")
    for sparse in graph.sparse_initializer:
        check_sparse_tensor(sparse, f"sparse initializer '{sparse.values.name}'")
    initializers = [tensor.name for tensor in graph.initializer]
    initializers += [sparse.values.name for sparse in graph.sparse_initializer]
    inputs = [value.name for value in graph.input]
    outputs = [value.name for value in graph.output]
    if "" in outputs:
        raise InvalidModelError("an output of the graph has no name")
    for what, names in (("initializer", initializers), ("input", inputs)):
        _check_names(what, names)
    known = {*inputs, *initializers}
    nodes = ordered_nodes(graph.node, known, outer)
    defined = known.union(name for node in nodes for name in node.output if name)
    for output in outputs:
        if output not in defined and output not in outer:
            raise InvalidModelError(f"graph output '{output}' is defined by nothing")
    for node in in_time(graph.node):
        _check_attributes(node)
        for subgraph in subgraphs(node):
            _check_graph(subgraph, outer | defined)


def _count_nodes(body: onnx.GraphProto | onnx.FunctionProto, depth: int) -> int:
    """Returns the number of nodes, including the nodes of subgraphs."""
    current_limits().check("nesting", depth, "nested graphs")
    graphs = (graph for node in body.node for graph in subgraphs(node))
    return len(body.node) + sum(_count_nodes(graph, depth + 1) for graph in graphs)


def _check_texts(message: Message, longest: int) -> None:
    """Checks that strings are UTF-8; for other strings, the protobuf parser returns bytes.

    `doc_string` is not checked, since it is never used. Values of metadata may be of any length.
    """
    check_time()
    for field, value in _fields(message):
        many = value if field.is_repeated else (value,)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for one in many:
                _check_texts(one, longest)
        elif field.type == FieldDescriptor.TYPE_STRING and field.name != "doc_string":
            for text in many:
                _check_text(field, text, longest)


def _fields(message: Message) -> Iterable[tuple[Any, Any]]:
    """Returns the fields of a message that are set; omits the data of tensors, which would be
    copied.
    """
    if not isinstance(message, TensorProto):
        return message.ListFields()
    names = ("name", "external_data", "metadata_props")
    return ((_TENSOR_FIELDS[name], getattr(message, name)) for name in names)


def _check_text(field: Any, text: object, longest: int) -> None:
    if not isinstance(text, str):
        owner = field.containing_type.name
        raise InvalidModelError(f"{field.name} of a {owner}, {text!r:.80}, is not valid UTF-8")
    if len(text) > longest and field.name != "value":
        raise LimitExceededError(
            "name_length", f"characters of the name {text[:40]!r}…", len(text), longest
        )


def _check_names(what: str, names: list[str]) -> None:
    if "" in names:
        raise InvalidModelError(f"an {what} of the graph has no name")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidModelError(f"{what} '{repeated[0]}' is defined more than once")


def _check_attributes(node: onnx.NodeProto) -> None:
    where = f"node '{node.name}' ({node.op_type})"
    repeated = [n for n, count in Counter(a.name for a in node.attribute).items() if count > 1]
    if repeated:
        raise InvalidModelError(f"{where}: attribute '{repeated[0]}' is given more than once")
    for attribute in node.attribute:
        what = f"{where}, attribute '{attribute.name}'"
        if attribute.type == AttributeProto.UNDEFINED and not attribute.ref_attr_name:
            raise InvalidModelError(f"{what}: it has no type")
        if attribute.HasField("t"):
            check_tensor(attribute.t, what)
        if attribute.HasField("sparse_tensor"):
            check_sparse_tensor(attribute.sparse_tensor, what)
        for tensor in attribute.tensors:
            check_tensor(tensor, what)
        for sparse in attribute.sparse_tensors:
            check_sparse_tensor(sparse, what)


def _check_functions(model: onnx.ModelProto) -> None:
    bodies = {function_key(function): function for function in model.functions}
    if len(bodies) < len(model.functions):
        keys = Counter(map(function_key, model.functions))
        domain, name, overload = next(key for key, count in keys.items() if count > 1)
        told = f" and the overload '{overload}'" if overload else ""
        raise InvalidModelError(f"the domain '{domain}' has two functions '{name}'{told}")
    for function in model.functions:
        known = set(function.input)
        nodes = ordered_nodes(function.node, known, frozenset())
        defined = known.union(name for node in nodes for name in node.output)
        for output in function.output:
            if output not in defined:
                raise InvalidModelError(
                    f"output '{output}' of function '{function.name}' is defined by nothing"
                )
        for node in nodes:
            _check_attributes(node)
            for subgraph in subgraphs(node):
                _check_graph(subgraph, defined)
    calls: dict[FunctionKey, _Below] = {}
    called = _check_calls(model.graph.node, bodies, calls, ())
    current_limits().check("body_nodes", called.nodes, "nodes of functions, expanded")
    for function in model.functions:
        _check_calls(function.node, bodies, calls, ())


@dataclass(frozen=True)
class _Below:
    """Graphs and functions below some nodes."""

    height: int
    """Depth of nested graphs and called functions."""
    nodes: int
    """Number of nodes of called functions, each counted as often as it is called."""


def _check_calls(
    nodes: Sequence[onnx.NodeProto],
    bodies: Mapping[FunctionKey, onnx.FunctionProto],
    calls: dict[FunctionKey, _Below],
    stack: tuple[FunctionKey | None, ...],
) -> _Below:
    """Returns the depth and the number of nodes below some nodes.

    Args:
        calls: what is below a call of each function visited so far; `_check_calls` extends it.
        stack: the functions that enclose the nodes, and `None` for each enclosing graph.
    """
    limits = current_limits()
    limits.check("nesting", len(stack), "nested functions and graphs")
    height = count = 0
    for node in nodes:
        key = called_function(node)
        if key in stack:
            chain = " -> ".join(name for _, name, _ in (*filter(None, stack), key))
            raise InvalidModelError(f"functions of the model call each other without end: {chain}")
        if key in bodies and key not in calls:
            inner = _check_calls(bodies[key].node, bodies, calls, (*stack, key))
            calls[key] = _Below(inner.height + 1, inner.nodes + len(bodies[key].node))
        graphs = [_check_calls(one.node, bodies, calls, (*stack, None)) for one in subgraphs(node)]
        called = calls.get(key, _Below(0, 0))
        height = max(height, called.height, *(graph.height + 1 for graph in graphs), 0)
        count += called.nodes + sum(graph.nodes for graph in graphs)
    limits.check("nesting", len(stack) + height, "nested functions and graphs")
    return _Below(height, count)
