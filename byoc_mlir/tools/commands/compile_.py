"""`byoc compile`: compile a model and say how long each stage took."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from byoc_mlir.tools.commands.common import add_model_arguments, compile_model, parse_shapes


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("compile", help=__doc__)
    add_model_arguments(parser)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,…")
    parser.add_argument("--time-passes", action="store_true", help="times of passes, not stages")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with compile_model(args) as executable:
        if args.shape:
            executable.warmup(parse_shapes(args.shape))
        program = executable.program
    times = program.report.pass_seconds if args.time_passes else program.report.compile_seconds
    table = Table()
    table.add_column("pass" if args.time_passes else "stage")
    table.add_column("seconds", justify="right")
    for name, seconds in times:
        table.add_row(name, f"{seconds:.3f}")
    table.add_row("total", f"{sum(seconds for _, seconds in times):.3f}")
    console = Console()
    console.print(table)
    weights = sum(array.nbytes for array in program.weights.values())
    console.print(
        f"object code {len(program.object_code) / 1e3:.0f} kB, weights {weights / 1e6:.1f} MB,"
        f" arena {program.arena_bytes / 1e6:.1f} MB, regions {len(program.regions)}"
    )
    return 0
