"""Assembly of the page from files of this package."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_mlir.names import printable
from byoc_mlir.view.document import graph_document
from byoc_mlir.view.excerpts import Details, fitted

if TYPE_CHECKING:
    from byoc_mlir.runtime.profile import Profile
    from byoc_mlir.runtime.report import Report
    from byoc_mlir.runtime.verification import Verification

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
        document: Mapping[str, object] = found.document()
        return gzip.compress(json.dumps(document).encode(), mtime=0)

    return base64.b64encode(fitted(details, compressed, MOST_PACKED_BYTES)).decode()
