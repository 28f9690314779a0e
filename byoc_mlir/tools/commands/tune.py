"""`byoc tune`: look for faster ways to compute a model on this machine, and keep them."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from rich.console import Console
from rich.table import Table

from byoc_mlir.calibration import write_calibration
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.tools.commands import common

_SHOWN = 20
"""Maximum number of kernels in the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    parser.add_argument(
        "--seconds",
        type=common.seconds,
        default=60.0,
        help="of the processor, for all that is compiled and measured (default: 60)",
    )
    parser.add_argument(
        "--write-calibration",
        metavar="FILE",
        help="write the calibration and the choices to FILE, for --calibration here or on equal"
        " machines",
    )
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from byoc_mlir.compiler.tuning.tune import tune_model

    tuning = tune_model(common.request_of(args), args.seconds)
    if args.write_calibration:
        write_calibration(calibration_of(None), args.write_calibration)
    if args.json:
        common.print_json(dataclasses.asdict(tuning))
        return 0
    console = Console(emoji=False)
    if tuning.reason:
        console.print(f"the model stays as it was: {tuning.reason}", markup=False)
        return 0
    console.print(
        f"{tuning.ratio:.2f} of the time before; {tuning.variants} variants were measured"
    )
    if tuning.kernels:
        console.print(_table(tuning.kernels[:_SHOWN]))
    return 0


def _table(kernels: Any) -> Table:
    table = Table()
    for column in ("before, ms", "after, ms", "before", "after", "kernel"):
        table.add_column(column, justify="right" if "ms" in column else "left")
    for one in kernels:
        times = (one.milliseconds_before, one.milliseconds_after)
        common.add_row(
            table, *(f"{time:.3f}" for time in times), one.before, one.after, one.problem
        )
    return table
