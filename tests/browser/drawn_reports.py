"""Pages for the browser: one with everything on it, and one of many nodes."""

from __future__ import annotations

from byoc_mlir.comparison import Difference
from byoc_mlir.runtime.profile import Profile, ProfileRow
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.runtime.verification import Compared, Verification
from byoc_mlir.view.excerpts import Details
from byoc_mlir.view.page import page as page_of

HOSTILE = """<img src=x onerror=alert(1)></script>'"&"""

_REGION = "planted_main_0"
_REPORT = Report(
    (
        ReportRow("w", "Constant", "folded", outputs=("w",)),
        ReportRow(
            "conv", "Conv", "planted", _REGION, "planted.conv", inputs=("x", "w"), outputs=("a",)
        ),
        ReportRow(
            "relu", "Relu", "planted", _REGION, "planted.conv", inputs=("a",), outputs=("b",)
        ),
        ReportRow("same", "Identity", "removed", inputs=("b",), outputs=("c",)),
        ReportRow("sin", "Sin", "host", reason="no rule for sin", inputs=("c",), outputs=("d",)),
        ReportRow(HOSTILE, "Cos", "host", reason=HOSTILE, inputs=("c",), outputs=("e",)),
        ReportRow("add", "Add", "planted", "planted_main_1", inputs=("d", "e"), outputs=("y",)),
    )
)
_PROFILE = Profile(
    (
        ProfileRow(
            ("conv", "relu"), ("Conv", "Relu"), "planted", _REGION, "fast", "nhwc", milliseconds=3.0
        ),
        ProfileRow(("sin",), ("Sin",), "host", "", "sin_0", milliseconds=0.5),
        ProfileRow((HOSTILE,), ("Cos",), "host", "", "cos_0", milliseconds=0.25),
        ProfileRow(("add",), ("Add",), "planted", "planted_main_1", "fast", milliseconds=0.25),
    ),
    *(4.0, 5, 2),
)
_DETAILS = Details(
    nodes={
        "conv": [("as imported", "%a = relay.nn.conv2d %x"), ("after merge-composite", "%b = two")],
        HOSTILE: [("as imported", HOSTILE)],
    },
    regions={_REGION: [("after partition-graph", "func.func private @planted_main_0")]},
    functions={"sin_0": "define void @sin_0()", f"{_REGION}_run": "define i32 @run()"},
    calls={"sin": ["sin_0"]},
)


def page() -> str:
    """Returns a page with a profile, errors, IR and code."""
    errors = [("sin", 1e-7, True), ("add", 0.5, False)]
    verification = Verification(
        "onnxruntime",
        tuple(
            Compared(name, name, "Op", "host", "", Difference(largest=one, scale=1.0), agrees)
            for name, one, agrees in errors
        ),
    )
    return page_of(_REPORT, HOSTILE, _PROFILE, verification, _DETAILS)


def large_page(nodes: int = 2000, in_region: int = 20) -> str:
    """Returns a page of many nodes: a chain of regions, with branches, and ops of the host between
    them.
    """
    rows: list[ReportRow] = []
    for at in range(nodes):
        group, inside = divmod(at, in_region)
        region = "" if inside == 0 else f"planted_main_{group}"
        reads = {f"t{at - 1}", f"t{at - 5}" if inside == 10 else f"t{at - 1}"}
        place = "planted" if region else "host"
        name = f"/model/layers.{group}/block/op_{at}"
        rows.append(
            ReportRow(name, "Conv", place, region, inputs=tuple(sorted(reads)), outputs=(f"t{at}",))
        )
    return page_of(Report(tuple(rows)), "many nodes")


def host_page(nodes: int = 2000) -> str:
    """Returns a page of many nodes that are all on the host."""
    rows = [
        ReportRow(
            f"op_{at}",
            "Add",
            "host",
            inputs=(f"t{at - 1}", f"t{at - 1 - at % 7}"),
            outputs=(f"t{at}",),
        )
        for at in range(nodes)
    ]
    return page_of(Report(tuple(rows)), "all on the host")


def framed() -> str:
    """Returns the HTML of a report in a notebook."""
    return _REPORT._repr_html_()
