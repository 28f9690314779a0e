"""Handwritten reports to draw."""

from __future__ import annotations

from byoc_mlir.comparison import Difference
from byoc_mlir.runtime.profile import Profile, ProfileRow
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.runtime.verification import Compared, Verification

HOSTILE = """</script><script>alert("x")</script><!--'&\u2028@DETAILS@"""
"""Node's name that would break out of any context in which it is not escaped."""


def small_report(name: str = "conv1") -> Report:
    """Returns four nodes in a chain: one folded, two in a region, one on the host."""
    return Report(
        (
            ReportRow("c", "Constant", "folded", outputs=("w",)),
            ReportRow(
                *(name, "Conv", "planted", "planted_main_0", "planted.conv2d_relu"),
                inputs=("x", "w"),
                outputs=("a",),
            ),
            ReportRow(
                *("relu1", "Relu", "planted", "planted_main_0", "planted.conv2d_relu"),
                inputs=("a",),
                outputs=("b",),
            ),
            ReportRow(
                *("sin1", "Sin", "host"),
                reason="planted: no rule for sin",
                inputs=("b",),
                outputs=("y",),
            ),
        )
    )


def small_profile(name: str = "conv1") -> Profile:
    """Returns two steps and the call."""
    rows = (
        ProfileRow(
            *((name, "relu1"), ("Conv", "Relu"), "planted", "planted_main_0", "fast"),
            layout="nhwc",
            milliseconds=3.0,
            multiplications=6_000_000,
        ),
        ProfileRow(("sin1",), ("Sin",), "host", "", "sin_0", milliseconds=0.5),
        ProfileRow((), (), "", "", "call from Python", milliseconds=0.5),
    )
    return Profile(rows, 4.0, 5, 1)


def small_verification() -> Verification:
    """Returns a result with one right node, one wrong one, and one with infinities."""
    return Verification(
        "onnxruntime",
        outputs=(_compared("sin1", 0.25, agrees=False),),
        nodes=(
            _compared("relu1", 1e-7, agrees=True),
            _compared("conv1", float("inf"), agrees=False),
        ),
    )


def _compared(node: str, largest: float, *, agrees: bool) -> Compared:
    found = Difference(largest=largest, scale=1.0)
    return Compared("t", node, "Op", "host", "", found, agrees)
