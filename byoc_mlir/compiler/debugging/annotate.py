"""Model whose nodes have the compiler's decisions as metadata, which Netron shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from byoc_mlir.errors import ExportError, InvalidModelError
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensor_check import external_locations
from byoc_mlir.frontend.graphs import all_nodes
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.report import Report, ReportRow

PREFIX = "byoc."
_FIRST_VERSION = 10
"""Version of ONNX's IR that has metadata of nodes."""


def write_annotated(
    model: str | Path, report: Report, path: str | Path, profile: Profile | None = None
) -> None:
    """Writes a model whose nodes have their placement as metadata.

    Args:
        model: the path of the model.
        report: the report of the compiled model.
        path: path of the new file; external weight files stay in place.
        profile: times of the nodes.

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
    """Returns a copy of a model whose nodes have metadata.

    The keys are `byoc.backend`, `byoc.region`, `byoc.pattern`, `byoc.reason`, `byoc.precision` and
    `byoc.implementation`. A profile adds `byoc.milliseconds` and, if several nodes share that time,
    `byoc.together_with`.
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
    """Returns, for each node, the time of its steps, and the other nodes that these steps
    compute.
    """
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
    """Sets a node's metadata entries that are not empty; removes entries of an earlier
    compilation.
    """
    kept = [one for one in node.metadata_props if not one.key.startswith(PREFIX)]
    del node.metadata_props[:]
    node.metadata_props.extend(kept)
    for key, value in entries.items():
        if value:
            node.metadata_props.add(key=f"{PREFIX}{key}", value=value)
