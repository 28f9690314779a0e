"""Where each op of a partitioned module went, as text."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.transforms.placement import placements


def placement_table(module: ModuleOp) -> str:
    """One line for each op, ONNX node names first where ops have any."""
    rows = [
        ReportRow(
            ", ".join(placement.nodes) or "-",
            placement.op,
            placement.backend,
            placement.region,
            placement.composite,
            placement.reason,
        )
        for placement in placements(module)
    ]
    return f"{Report(tuple(rows))}\n"
