"""`byoc report`: show the placement of every ONNX node, and the reason."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from textwrap import wrap

from byoc_mlir.names import printable
from byoc_mlir.runtime.profile import WIDTH
from byoc_mlir.runtime.report import RegionTimes, Report
from byoc_mlir.tools.commands import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    parser.add_argument(
        "--all", action="store_true", help="a line for each node, as wide as it takes"
    )
    common.add_annotate_argument(parser)
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with common.open_model(args) as executable:
        if args.shape:
            executable.warmup(common.shapes_of(args))
        report = executable.report()
    common.annotate(args, report)
    if args.json:
        print(report.to_json())
    else:
        print(report if args.all else grouped_text(report))
    return 0


def grouped_text(report: Report) -> str:
    """Returns the placement of nodes in 80 columns, one entry for each kind, then the times of
    regions.
    """
    groups = Counter(
        (row.op_type, row.placement, row.composite, row.implementation, row.precision, row.reason)
        for row in report
    )
    lines = [_entry(count, *kind) for kind, count in groups.items()]
    texts = [*_compared(report), *report.summary()]
    return "\n".join([*lines, *(line for text in texts for line in _wrapped(text))])


def _compared(report: Report) -> Iterator[str]:
    """Yields the estimated times of each region and its alternatives, regions that went back to the
    host among them.
    """
    regions = defaultdict[tuple[str, RegionTimes], list[str]](list)
    for row in report:
        if row.times is not None:
            regions[row.region, row.times].append(row.node)
    for (region, times), nodes in regions.items():
        ends = " to ".join(dict.fromkeys([nodes[0], nodes[-1]]))
        yield f"{region or f'back on the host, {ends}'}, {times}"


def _entry(
    count: int,
    op_type: str,
    placement: str,
    composite: str,
    implementation: str,
    precision: str,
    reason: str,
) -> str:
    parts = [placement]
    if composite:
        parts.append(f"as {composite}")
    if implementation:
        parts.append(f"by {implementation}")
    if precision not in ("", "f32"):
        parts.append(f"in {precision}")
    text = f"{count:5} {op_type}: {' '.join(parts)}{f'; {reason}' if reason else ''}"
    return "\n".join(_wrapped(text))


def _wrapped(text: str) -> list[str]:
    return wrap(printable(text), WIDTH, subsequent_indent=" " * 8, drop_whitespace=True) or [""]
