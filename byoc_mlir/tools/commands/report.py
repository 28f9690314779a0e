"""`byoc report`: where every ONNX node went, and why."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from byoc_mlir.runtime.report import Report
from byoc_mlir.tools.commands.common import add_model_arguments, compile_model, parse_shapes


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("report", help=__doc__)
    add_model_arguments(parser)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,…")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with compile_model(args) as executable:
        if args.shape:
            executable.warmup(parse_shapes(args.shape))
        report = executable.report()
    if args.json:
        print(report.to_json())
        return 0
    console = Console()
    console.print(node_table(report))
    summary = ", ".join(f"{count} {name}" for name, count in report.counts().items())
    console.print(f"{len(report)} nodes: {summary}")
    for text in report.warnings:
        console.print(f"[yellow]warning:[/] {escape(text)}")
    return 0


def node_table(report: Report) -> Table:
    """One line for each node."""
    table = Table()
    for column in ("node", "op", "placement", "region", "composite", "implementation", "reason"):
        table.add_column(column, overflow="fold")
    for row in report:
        cells = (
            row.node,
            row.op_type,
            row.placement,
            row.region,
            row.composite,
            row.implementation,
            row.reason,
        )
        table.add_row(*map(escape, cells))
    return table
