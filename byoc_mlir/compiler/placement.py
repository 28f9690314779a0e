"""The report: one row for every ONNX node, from the partitioned module and backend details."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.compiler.options import Fallback
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.frontend.model import ImportedModel, OnnxNode
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.transforms.placement import Placement, placements

HOST = "host"

HEAVY_ONNX_OPS = frozenset(
    {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "Attention", "Einsum"}
)
"""What costs so much that a user wants to know when no backend took it."""


def build_report(
    imported: ImportedModel,
    codes: Sequence[RegionCode],
    problems: Sequence[str],
    targets: Sequence[str],
) -> Report:
    """A row for each node of the model; for IR that came without one, a row for each op."""
    found = placements(imported.module)
    nodes = imported.nodes or _nodes_of_ops(found)
    by_node: dict[str, Placement] = {}
    for placement in found:
        for name in placement.nodes:
            known = by_node.get(name)
            # A node may have become several ops: what stayed on the host is what to report.
            if known is None or (known.backend != HOST and placement.backend == HOST):
                by_node[name] = placement
    details = {name: detail for code in codes for detail in code.details for name in detail.nodes}
    rows: list[ReportRow] = []
    for node in nodes:
        detail = details.get(node.name)
        rows.append(
            ReportRow(
                **_placed(node, by_node.get(node.name), targets),
                implementation=detail.implementation if detail else "",
                milliseconds=detail.milliseconds if detail else None,
            )
        )
    notes = [
        f"{', '.join(detail.nodes)}: {detail.note}"
        for code in codes
        for detail in code.details
        if detail.is_warning
    ]
    composites = Counter(
        op.composite_name.data for op in imported.module.walk() if isinstance(op, CompositeOp)
    )
    return Report(tuple(rows), (*problems, *notes), dict(sorted(composites.items())))


def check_fallback(report: Report, fallback: Fallback, targets: Sequence[str]) -> None:
    """Warns of, or refuses, what stayed on the host.

    Raises:
        FallbackForbiddenError: `fallback` is `"forbid"` and a node is on the host.
    """
    on_host = report.placed(HOST)
    if fallback == "forbid" and on_host:
        raise FallbackForbiddenError(
            f"{len(on_host)} node(s) are not taken by {', '.join(targets) or 'any target'}:\n"
            + _listed(on_host)
        )
    heavy = [row for row in on_host if row.op_type in HEAVY_ONNX_OPS]
    if fallback == "warn" and heavy and targets:
        warnings.warn(
            f"{len(heavy)} heavy node(s) stay on the host:\n{_listed(heavy)}\n"
            'fallback="allow" silences this, fallback="forbid" makes it an error',
            stacklevel=2,
        )


def _placed(node: OnnxNode, placement: Placement | None, targets: Sequence[str]) -> dict[str, str]:
    row = {"node": node.name, "op_type": node.op_type}
    if node.status != "imported":
        return {**row, "placement": node.status, "reason": node.note}
    if placement is None:
        return {**row, "placement": "removed", "reason": "nothing is left of it after folding"}
    return {
        **row,
        "placement": placement.backend,
        "region": placement.region,
        "composite": placement.composite,
        "reason": placement.reason if targets else "no backend was asked",
    }


def _nodes_of_ops(found: Iterable[Placement]) -> tuple[OnnxNode, ...]:
    nodes: dict[str, OnnxNode] = {}
    for placement in found:
        for name in placement.nodes:
            nodes.setdefault(name, OnnxNode(name, placement.op, "imported"))
    return tuple(nodes.values())


def _listed(rows: Iterable[ReportRow]) -> str:
    return "\n".join(f"  {row.node} ({row.op_type}): {row.reason}" for row in rows)
