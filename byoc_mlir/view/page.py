"""Assembly of the page from files of this package."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from byoc_mlir.names import printable
from byoc_mlir.view.excerpts import Details, fitted

if TYPE_CHECKING:
    from byoc_mlir.runtime.profile import Profile, ProfileRow
    from byoc_mlir.runtime.report import Report, ReportRow
    from byoc_mlir.runtime.verification import Compared, Verification


_FOLDER = Path(__file__).parent
_LIBRARY = "dagre.min.js"
_SCRIPTS = ("model.js", "layout.js", "scene.js", "panel.js", "app.js")
_PLACE = re.compile(r"@(TITLE|STYLE|DATA|DETAILS|SCRIPT)@")
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)

MOST_PACKED_BYTES = 1_000_000
"""Maximum bytes of compressed IR and code in a page; more is cut."""


def page(
    report: Report,
    title: str,
    profile: Profile | None = None,
    verification: Verification | None = None,
    details: Details | None = None,
) -> str:
    """Returns an HTML page with the graph of a report, which loads nothing from elsewhere.

    Args:
        report: the report to draw.
        title: name of the model.
        profile: times of the nodes.
        verification: errors of the nodes.
        details: the IR and the code of nodes and regions.
    """
    document = graph_document(report, title, profile, verification)
    parts = {
        "TITLE": html.escape(printable(title)),
        "STYLE": _asset("page.css"),
        "DATA": _inside_script(json.dumps(document, allow_nan=False)),
        "DETAILS": "" if details is None else _packed(details),
        "SCRIPT": "\n".join([_library(), '"use strict";', *map(_asset, _SCRIPTS)]),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _asset("page.html"))


def frame(report: Report) -> str:
    """Returns the page in an iframe for notebooks, so that neither's styles affect the other."""
    source = html.escape(page(report, "report"))
    style = "width:100%;height:640px;border:1px solid #8884"
    return f'<iframe srcdoc="{source}" style="{style}" title="report"></iframe>'


def _asset(name: str) -> str:
    return (_FOLDER / "assets" / name).read_text(encoding="utf-8")


def _library() -> str:
    """Returns the graph layout library after its licence, in its original form."""
    licence = (_FOLDER / "vendor" / f"{_LIBRARY}.LEGAL.txt").read_text(encoding="utf-8")
    code = (_FOLDER / "vendor" / _LIBRARY).read_text(encoding="utf-8")
    return f"{licence}\n{_SOURCE_MAP.sub('', code)}"


def _inside_script(text: str) -> str:
    """Returns JSON with escapes, so that nothing can end the enclosing HTML element."""
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _packed(details: Details) -> str:
    def compressed(found: Details) -> bytes:
        return gzip.compress(json.dumps(vars(found)).encode(), mtime=0)

    return base64.b64encode(fitted(details, compressed, MOST_PACKED_BYTES)).decode()


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
