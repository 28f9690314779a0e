"""Check for ops of a model that cannot be compiled, without compiling."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Literal, TypeAlias, get_args

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper

from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.dims import LEAST_HINT
from byoc_mlir.errors import (
    ByocError,
    InputValuesNeededError,
    InvalidInputError,
    InvalidModelError,
    NodeProblem,
    UnsupportedModelError,
)
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.graphs import called_function, function_key, standard_name, subgraphs
from byoc_mlir.frontend.importer import import_loaded, import_symbolic
from byoc_mlir.frontend.inferred import inferred_graph
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.known_ops import function_of, node_schema, unknown_op
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.frontend.order import defined_names, names_of, ordered_nodes
from byoc_mlir.frontend.stages.split import split_model
from byoc_mlir.frontend.strings import string_parts
from byoc_mlir.frontend.structures import is_structured
from byoc_mlir.limits import Limits, limited
from byoc_mlir.names import printable
from byoc_mlir.runtime.profile import WIDTH

Status: TypeAlias = Literal["supported", "interpreted", "unsupported"]


@dataclass(frozen=True)
class OpRow:
    """Nodes of a model with the same op, types and status."""

    domain: str
    """Domain; `ai.onnx` for the ops of ONNX itself."""
    op_type: str
    opset: int
    types: tuple[str, ...]
    """Types of the inputs that are known."""
    status: Status
    """`interpreted` means that the op has no native code, and runs in Python."""
    reason: str = ""
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f"{self.domain}.{self.op_type}" if self.domain != "ai.onnx" else self.op_type
        types = f" of {', '.join(self.types)}" if self.types else ""
        text = f"{len(self.nodes):5} {self.status:<12} {name}, opset {self.opset}{types}"
        if self.reason:
            some = ", ".join(self.nodes[:3]) + (", …" if len(self.nodes) > 3 else "")
            text = f"{text}: {self.reason} ({some})"
        return "\n".join(wrap(printable(text), WIDTH, subsequent_indent=" " * 8))


@dataclass(frozen=True)
class Check:
    """Support of a model's ops, known before compilation."""

    rows: tuple[OpRow, ...]
    note: str = ""
    """Part of the check that was not possible, or ""."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Returns the number of nodes of each status."""
        found: dict[str, int] = dict.fromkeys(get_args(Status), 0)
        for row in self.rows:
            found[row.status] += len(row.nodes)
        return found

    @property
    def is_supported(self) -> bool:
        """True if no node is refused."""
        return not self.counts["unsupported"]

    def to_json(self) -> str:
        """Returns the check as a JSON document."""
        rows = [asdict(row) for row in self.rows]
        document = {"counts": self.counts, "ops": rows, "note": self.note}
        return json.dumps(document, indent=2)

    def text(self, *, every: bool = False) -> str:
        """Returns a text of 80 columns: ops without native code, or all ops if `every`."""
        shown = [row for row in self.rows if every or row.status != "supported"]
        total = sum(self.counts.values())
        counted = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        lines = [*map(str, shown), f"{total} node{'' if total == 1 else 's'}: {counted or 'none'}"]
        return "\n".join([*lines, *wrap(printable(self.note), WIDTH)])


def check_model(
    source: str | Path | bytes | ModelProto, shapes: Mapping[str, Sequence[int]], limits: Limits
) -> Check:
    """Imports a model, and checks which of its nodes can be compiled.

    Args:
        shapes: shapes of inputs with symbolic dimensions; others stay symbolic.

    Raises:
        InvalidModelError: the model is not valid.
        LimitExceededError: the model is larger than the limits.
    """
    with ir_boundary("check"), limited(limits):
        model = load_model(source)
        nodes = list(_all_nodes(model))
        problems = {name: reason for name, node in nodes if (reason := _unknown(node, model))}
        interpreted: set[str] = set()
        note = _why_not_imported(model)
        if not note:
            refused, interpreted, note = _imported(model, TensorReader.beside(source), shapes)
            problems |= {problem.node: problem.reason for problem in refused}
    return Check(tuple(_rows(model, nodes, problems, interpreted)), note)


def _rows(
    model: ModelProto,
    nodes: Sequence[tuple[str, NodeProto]],
    problems: Mapping[str, str],
    interpreted: Set[str],
) -> list[OpRow]:
    """Returns a row for each op, unsupported ones first."""
    opsets, types = opset_versions(model), _types(model)
    names: dict[OpRow, list[str]] = {}
    for name, node in nodes:
        domain = standard_name(node.domain)
        read = tuple(dict.fromkeys(types[one] for one in node.input if one in types))
        status, reason = _fate(name, problems, interpreted)
        opset = opsets.get(domain, 0)
        row = OpRow(domain or "ai.onnx", node.op_type, opset, read, status, reason)
        names.setdefault(row, []).append(name)
    for name in problems.keys() - {name for name, _ in nodes}:  # in a body that was inlined
        names[OpRow("ai.onnx", "", 0, (), "unsupported", problems[name])] = [name]
    rows = [replace(row, nodes=tuple(found)) for row, found in names.items()]
    order = {status: at for at, status in enumerate(reversed(get_args(Status)))}
    return sorted(
        rows, key=lambda row: (order[row.status], -len(row.nodes), row.domain, row.op_type)
    )


def _fate(name: str, problems: Mapping[str, str], interpreted: Set[str]) -> tuple[Status, str]:
    if name in problems:
        return "unsupported", problems[name]
    return ("interpreted", "it has no native code") if name in interpreted else ("supported", "")


def _imported(
    model: ModelProto, reader: TensorReader, shapes: Mapping[str, Sequence[int]]
) -> tuple[Sequence[NodeProblem], set[str], str]:
    """Returns the nodes that the import refuses, the nodes that are interpreted, and a note if
    checks are missing.
    """
    symbols = [info for info in model_inputs(model) if not info.is_static]
    try:
        if all(info.name in shapes for info in symbols):
            found = import_loaded(model, reader, shapes)
        else:
            names = {size for info in symbols for size in info.shape if isinstance(size, str)}
            found = import_symbolic(model, reader, dict.fromkeys(sorted(names), LEAST_HINT))
    except InputValuesNeededError as error:
        return (), set(), f"shapes follow from the values of {', '.join(error.inputs)}"
    except UnsupportedModelError as error:
        return error.problems, set(), ""
    except (InvalidModelError, InvalidInputError):
        raise
    except ByocError as error:
        return (), set(), f"checked by name alone, as sizes decide: {error}; give --shape"
    return (), _interpreted(found), ""


def _interpreted(found: ImportedModel) -> set[str]:
    ops = (op for op in found.module.walk() if isinstance(op, OnnxNodeOp))
    return {name for op in ops for name in node_names(op)}


def _why_not_imported(model: ModelProto) -> str:
    """Returns why a model cannot be imported before it runs, or ""."""
    reasons = {
        "it takes or gives sequences or optionals": is_structured(model),
        "it has strings": bool(string_parts(model)),
        "shapes follow from computed values": len(split_model(model)) > 1,
    }
    found = [reason for reason, holds in reasons.items() if holds]
    return f"checked by name alone, as {' and '.join(found)}" if found else ""


def _unknown(node: NodeProto, model: ModelProto) -> str:
    """Returns why a node's op is unknown, or "" if it is known."""
    domain = standard_name(node.domain)
    opset = opset_versions(model).get(domain)
    if called_function(node) in map(function_key, model.functions):
        return ""
    if opset is None:
        return f"the model imports no opset of the domain '{node.domain}'"
    known = node_schema(node, opset) or function_of(node, opset)
    return "" if known else unknown_op(node, opset)


def _all_nodes(model: ModelProto) -> Iterator[tuple[str, NodeProto]]:
    """Yields the nodes with their names, including those in subgraphs and functions."""
    yield from _named("", ordered_nodes(model.graph.node, defined_names(model.graph)))
    for function in model.functions:
        yield from _named(f"{function.name}/", function.node)


def _named(prefix: str, nodes: Sequence[NodeProto]) -> Iterator[tuple[str, NodeProto]]:
    for name, node in zip(names_of(nodes), nodes, strict=True):
        yield f"{prefix}{name}", node
        for graph in subgraphs(node):
            yield from _named(f"{prefix}{name}/", graph.node)


def _types(model: ModelProto) -> dict[str, str]:
    """Returns the element types of the main graph's tensors, as far as they can be inferred."""
    try:
        graph = inferred_graph(model) or model.graph
    except Exception:  # unknown ops stop it, each version of it in its own way
        graph = model.graph
    found = {one.name: _type_name(one.data_type) for one in graph.initializer}
    for info in (*graph.value_info, *graph.input, *graph.output):
        if info.type.tensor_type.elem_type:
            found[info.name] = _type_name(info.type.tensor_type.elem_type)
    return found


def _type_name(kind: int) -> str:
    if kind == onnx.TensorProto.STRING:
        return "string"
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind)).name
