"""A model with what the compiler did to its nodes as their metadata, which Netron shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from byoc_mlir.compiler.cache.external_files import external_locations
from byoc_mlir.errors import ExportError, InvalidModelError
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.graphs import all_nodes
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.report import Report, ReportRow

PREFIX = "byoc."
_FIRST_VERSION = 10
"""Of ONNX's IR: the one whose nodes have metadata."""


def write_annotated(
    model: str | Path, report: Report, path: str | Path, profile: Profile | None = None
) -> None:
    """Writes a model whose nodes say where they run.

    Args:
        model: the path of the model.
        report: that of the model, compiled.
        path: of the new file; weights in files of their own stay there.
        profile: where its time goes.

    Raises:
        InvalidModelError: the file is no ONNX model.
        ExportError: the new file is in another folder than the files with weights.
    """
    if Path(model).suffix in (".mlir", ".so"):
        raise InvalidModelError(f"{model} has no ONNX nodes to annotate; give the .onnx file")
    found = annotated(load_model(model), report, profile)
    if external_locations(found) and Path(path).resolve().parent != Path(model).resolve().parent:
        raise ExportError(
            f"the weights of {model} are in files beside it; write the annotated model there, too"
        )
    Path(path).write_bytes(found.SerializeToString())


def annotated(
    model: onnx.ModelProto, report: Report, profile: Profile | None = None
) -> onnx.ModelProto:
    """A copy of a model whose nodes have metadata: `byoc.backend`, `byoc.region`, `byoc.pattern`,
    `byoc.reason`, `byoc.precision`, `byoc.implementation`, and from a profile `byoc.milliseconds`
    and, where several nodes take that time together, `byoc.together_with`.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(copy.ir_version, _FIRST_VERSION)
    rows = list(report)
    by_output = {(row.op_type, output): row for row in reversed(rows) for output in row.outputs}
    by_name = {row.node: row for row in rows}
    times = {} if profile is None else _times(profile)
    for node in all_nodes(copy.graph.node):
        outputs = ((node.op_type, name) for name in node.output if name)
        row = next((by_output[key] for key in outputs if key in by_output), by_name.get(node.name))
        if row is not None:
            _annotate(node, {**_placement(row), **times.get(row.node, {})})
    return copy


def _placement(row: ReportRow) -> Mapping[str, str]:
    return {
        "backend": row.placement,
        "region": row.region,
        "pattern": row.composite,
        "reason": row.reason,
        "precision": row.precision,
        "implementation": row.implementation,
    }


def _times(profile: Profile) -> dict[str, dict[str, str]]:
    """By node: the time of the steps that compute it, and the nodes that they compute, too."""
    milliseconds: dict[str, float] = {}
    together: dict[str, dict[str, None]] = {}
    for step in profile:
        for node in step.nodes:
            milliseconds[node] = milliseconds.get(node, 0.0) + step.milliseconds
            others = (other for other in step.nodes if other != node)
            together.setdefault(node, {}).update(dict.fromkeys(others))
    return {
        node: {"milliseconds": f"{spent:.4f}", "together_with": ", ".join(together[node])}
        for node, spent in milliseconds.items()
    }


def _annotate(node: onnx.NodeProto, entries: Mapping[str, str]) -> None:
    """Adds what is not empty; what an earlier compilation has left goes."""
    kept = [one for one in node.metadata_props if not one.key.startswith(PREFIX)]
    del node.metadata_props[:]
    node.metadata_props.extend(kept)
    for key, value in entries.items():
        if value:
            node.metadata_props.add(key=f"{PREFIX}{key}", value=value)
