"""The report: one row for every ONNX node, from the partitioned module and backend details."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.compiler.request import Fallback
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.frontend.model import ImportedModel, ImportVariant, OnnxNode
from byoc_mlir.names import printable
from byoc_mlir.runtime.report import GuardRow, Report, ReportRow, Variant
from byoc_mlir.transforms.annotate_target import CONTROL_FLOW
from byoc_mlir.transforms.kept_float import kept_float
from byoc_mlir.transforms.placement import HOST, Placement, placements
from byoc_mlir.transforms.prune_regions import DEMOTED
from byoc_mlir.warned import warn

HEAVY_OPS = frozenset(
    {
        *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv"),
        *("MatMul", "MatMulInteger", "QLinearMatMul", "Gemm", "Einsum", "Attention"),
        *("QGemm", "QAttention", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"),
        *("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"),
        *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
        *(f"qnn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
        *("nn.dense", "nn.matmul", "nn.lstm", "nn.gru", "qnn.dense", "qnn.matmul"),
    }
)
"""Expensive ops, whose placement on the host matters to users: names of ONNX, and of Relay for
models that come as IR.
"""

UNASKED = "no backend was asked"
"""Reason of a node on the host that no backend refused."""


def build_report(
    imported: ImportedModel,
    codes: Sequence[RegionCode],
    problems: Sequence[str],
    omitted: Mapping[str, str],
) -> Report:
    """Builds the report: a row for each node of the model, or for each op of IR without a model.

    Args:
        imported: the imported model, whose module is partitioned.
        codes: the code of the module's regions.
        problems: problems of the compilation.
        omitted: reasons of omitted backends, by name.
    """
    details: dict[str, list[OpDetail]] = {}
    for code in codes:
        for detail in code.details:
            for name in detail.nodes:
                details.setdefault(name, []).append(detail)
    views = _device_views(imported.module, codes)
    rows = [
        _with_details(row, details.get(row.node, ())) if row.region else row
        for row in report_rows(imported.module, imported.nodes, views)
    ]
    notes = [
        f"{', '.join(detail.nodes)}: {detail.note}"
        for code in codes
        for detail in code.details
        if detail.is_warning
    ]
    composites = Counter(
        op.composite_name.data for op in imported.module.walk() if isinstance(op, CompositeOp)
    )
    kept = kept_float(imported.module)
    products = Counter[str]()
    for placement in placements(imported.module):
        products[placement.precision] += placement.multiplications
    return Report(
        tuple(_with_omitted(_with_precision(row, kept), omitted) for row in rows),
        (*problems, *notes),
        dict(sorted(composites.items())),
        {name: count for name, count in products.items() if count},
        _variants(imported.variant),
    )


def _device_views(module: ModuleOp, codes: Sequence[RegionCode]) -> Mapping[Operation, str]:
    regions = {code.symbol: code.space for code in codes if code.space != HOST_SPACE}
    if not regions:
        return {}
    from byoc_mlir.compiler.partition.device_views import device_views  # few models need it

    return device_views(module, regions)


def _variants(variant: ImportVariant | None) -> tuple[Variant, ...]:
    if variant is None:
        return ()
    guards = tuple(GuardRow(str(guard), guard.reason) for guard in variant.guards)
    return (Variant(guards, " ".join(variant.reason.split())),)


def _with_precision(row: ReportRow, kept: Mapping[str, str]) -> ReportRow:
    """Returns the row; if its node is computed in `f32` despite the requested precision, with the
    reason.
    """
    reason = kept.get(row.node)
    return row if reason is None else replace(row, precision=f"{row.precision or 'f32'}: {reason}")


def _with_omitted(row: ReportRow, omitted: Mapping[str, str]) -> ReportRow:
    """Returns the row; if its node is on the host, with the reasons of omitted backends."""
    if not omitted or row.placement != HOST or row.reason == CONTROL_FLOW:
        return row
    known = [] if row.reason == UNASKED else [row.reason]
    reasons = [*known, *(f"{name}: {reason}" for name, reason in omitted.items())]
    return replace(row, reason="; ".join(reasons))


def _with_details(row: ReportRow, details: Sequence[OpDetail]) -> ReportRow:
    """Returns the row of a node, with the details of the primitives that compute it."""
    if not details:
        return row
    times = [one.milliseconds for one in details if one.milliseconds is not None]
    return replace(
        row,
        implementation=" + ".join(dict.fromkeys(one.implementation for one in details)),
        milliseconds=sum(times) if times else None,
    )


def check_fallback(report: Report, fallback: Fallback, targets: Sequence[str]) -> None:
    """Warns of expensive nodes on the host, or refuses all nodes there, except control flow.

    Raises:
        FallbackForbiddenError: `fallback` is `"forbid"` and a node is on the host.
    """
    on_host = [row for row in report.placed(HOST) if row.reason != CONTROL_FLOW]
    if fallback == "forbid" and on_host:
        raise FallbackForbiddenError(
            f"{len(on_host)} node(s) are not taken by {', '.join(targets) or 'any target'}:\n"
            + _listed(on_host)
        )
    heavy = [row for row in on_host if row.op_type in HEAVY_OPS and DEMOTED not in row.reason]
    if fallback == "warn" and heavy and targets:
        warn(
            f"{len(heavy)} heavy node(s) stay on the host:\n{_listed(heavy)}\n"
            '  fallback="allow" silences this, fallback="forbid" makes it an error',
        )


def report_rows(
    module: ModuleOp, nodes: Sequence[OnnxNode], views: Mapping[Operation, str] | None = None
) -> Sequence[ReportRow]:
    """Returns the placement of each node, from a partitioned module.

    Args:
        module: the module.
        nodes: result of the import for each node of the model; empty for IR without an ONNX model:
            then each op gets a row.
        views: devices on which ops are views of values, by op.
    """
    views = views or {}
    found = placements(module, views.keys())
    if not nodes:
        return [_placed(", ".join(one.nodes) or "-", one.op, [one]) for one in found]
    of_node: dict[str, list[Placement]] = {}
    for placement in found:
        for name in placement.nodes:
            of_node.setdefault(name, []).append(placement)
    viewed = {name: device for op, device in views.items() for name in node_names(op)}
    return [
        replace(
            _row_of(node, of_node.get(node.name, ()), viewed.get(node.name)),
            inputs=node.inputs,
            outputs=node.outputs,
        )
        for node in nodes
    ]


def _row_of(node: OnnxNode, ops: Sequence[Placement], viewed_on: str | None) -> ReportRow:
    if node.status == "imported" and not ops and viewed_on is not None:
        note = f"a view of a value on device '{viewed_on}'"
        return ReportRow(node.name, node.op_type, "removed", reason=note)
    if node.status == "imported":
        return _placed(node.name, node.op_type, ops)
    return ReportRow(node.name, node.op_type, node.status, reason=node.note)


def _placed(name: str, op_type: str, ops: Sequence[Placement]) -> ReportRow:
    """Returns the row of a node that was converted to these ops; its placement is `host` if the
    host runs one of them.
    """
    if not ops:
        note = "nothing is left of it after folding"
        return ReportRow(name, op_type, "removed", reason=note)
    on_host = [one for one in ops if one.backend == HOST]
    most = max(ops, key=lambda one: one.multiplications).precision
    if not on_host:
        one = ops[0]
        where = (one.backend, one.region, one.composite, one.reason)
        return ReportRow(name, op_type, *where, precision=most, times=one.times)
    reasons = "; ".join(one.reason or UNASKED for one in on_host)
    reason = "; ".join(dict.fromkeys(reasons.split("; ")))  # ops of one node share many of them
    if len(on_host) < len(ops):
        reason = f"{len(on_host)} of its {len(ops)} ops: {reason}"
    times = next((one.times for one in on_host if one.times is not None), None)
    return ReportRow(name, op_type, HOST, reason=reason, precision=most, times=times)


def is_all_on_host(row: ReportRow) -> bool:
    """True if no backend runs any of the node's ops."""
    return not row.region and _PARTLY.match(row.reason) is None


_PARTLY = re.compile(r"\d+ of its \d+ ops: ")


def _listed(rows: Iterable[ReportRow]) -> str:
    texts = (f"{row.node} ({row.op_type}): {row.reason}" for row in rows)
    return "\n".join(f"  {printable(text)}" for text in texts)
