"""Data of the page as JSON: nodes, the steps of a profile, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from byoc_mlir.runtime.profile import Profile, ProfileRow
    from byoc_mlir.runtime.report import Report, ReportRow
    from byoc_mlir.runtime.verification import Compared, Verification

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LARGEST_ERROR = 1e30
"""Substitute for infinity, which JSON does not have."""


def graph_document(
    report: Report, title: str, profile: Profile | None, verification: Verification | None
) -> dict[str, Json]:
    """Returns all data of the page except IR and code."""
    steps = () if profile is None else profile.rows
    errors = {} if verification is None else _errors(verification)
    index = {row.node: at for at, row in reversed(list(enumerate(report.rows)))}
    served = [[index[name] for name in step.nodes if name in index] for step in steps]
    return {
        "title": title,
        "summary": list(report.summary()),
        "nodes": [
            _node(row, [at for at, rows in enumerate(served) if number in rows], errors)
            for number, row in enumerate(report.rows)
        ],
        "steps": [_step(step, rows, profile) for step, rows in zip(steps, served, strict=True)],
        "profile": None
        if profile is None
        else {
            "milliseconds": profile.milliseconds,
            "runs": profile.runs,
            "threads": profile.threads,
        },
        "verification": None
        if verification is None
        else {"agrees": verification.agrees, "against": verification.against},
    }


def _node(
    row: ReportRow, steps: Sequence[int], errors: dict[str, tuple[float, bool]]
) -> dict[str, Json]:
    error, agrees = errors.get(row.node, (None, True))
    return {
        "name": row.node,
        "op": row.op_type,
        "place": row.placement,
        "region": row.region,
        "composite": row.composite,
        "reason": row.reason,
        "precision": row.precision,
        "implementation": row.implementation,
        "inputs": list(row.inputs),
        "outputs": list(row.outputs),
        "steps": list(steps),
        "error": error,
        "agrees": agrees,
    }


def _step(row: ProfileRow, nodes: Sequence[int], profile: Profile | None) -> dict[str, Json]:
    total = 0.0 if profile is None else profile.milliseconds
    return {
        "title": row.title,
        "nodes": list(nodes),
        "region": row.region,
        "implementation": row.implementation,
        "layout": row.layout,
        "milliseconds": row.milliseconds,
        "share": row.milliseconds / total if total else 0.0,
        "gflops": row.gflops,
        "gbytes": row.gbytes,
    }


def _errors(verification: Verification) -> dict[str, tuple[float, bool]]:
    """Returns by node the largest error of its outputs, relative to the largest element, and a
    flag.

    The flag is set if all outputs of the node are right.
    """
    found: dict[str, tuple[float, bool]] = {}
    for one in (*verification.nodes, *verification.boundaries, *verification.outputs):
        error, agrees = found.get(one.node, (0.0, True))
        found[one.node] = max(error, _error(one)), agrees and one.agrees
    return found


def _error(one: Compared) -> float:
    return min(one.difference.relative, LARGEST_ERROR)
