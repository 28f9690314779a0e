"""`byoc bench`: time a model on this machine."""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from byoc_mlir.names import printable
from byoc_mlir.progress import shown
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    parser.add_argument("--runs", type=at_least(1), default=100)
    parser.add_argument("--warmup", type=at_least(0), default=10)
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with common.open_model(args) as executable:
        inputs = common.random_inputs(executable.inputs, common.shapes_of(args))
        times: list[float] = []
        with shown("run"):
            for index in range(args.warmup + args.runs):
                start = time.perf_counter()
                executable.run(inputs)
                if index >= args.warmup:
                    times.append((time.perf_counter() - start) * 1e3)
    figures = {
        "min": np.min(times),
        "median": np.median(times),
        "p95": np.percentile(times, 95),
        "max": np.max(times),
    }
    if args.json:
        common.print_json(
            {
                "model": args.model,
                "threads": executable.threads,
                "runs": args.runs,
                "milliseconds": {name: float(figure) for name, figure in figures.items()},
            }
        )
        return 0
    model = printable(args.model)
    print(f"{model}, {executable.threads} thread(s), {args.runs} runs, milliseconds:")
    table = Table()
    for column in figures:
        table.add_column(column, justify="right")
    table.add_row(*(f"{figure:.3f}" for figure in figures.values()))
    Console().print(table)
    return 0
