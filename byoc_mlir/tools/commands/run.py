"""`byoc run`: compile or load a model, run it, show the answer, placement and latency."""

from __future__ import annotations

import argparse
import time
from typing import Any
from zipfile import BadZipFile

import numpy as np
from rich.console import Console
from rich.table import Table

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.files import open_file
from byoc_mlir.runtime.report import Report
from byoc_mlir.tools.commands.common import (
    add_model_arguments,
    add_shape_argument,
    at_least,
    open_model,
    random_inputs,
    shapes_of,
)


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("run", help=__doc__)
    add_model_arguments(parser)
    parser.add_argument("--input", metavar="FILE.npz", help="inputs by name (default: random)")
    add_shape_argument(parser)
    parser.add_argument("--output", metavar="FILE.npz", help="write the outputs there")
    parser.add_argument("--seed", type=at_least(0), default=0, help="of random inputs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    console = Console()
    start = time.perf_counter()
    with open_model(args) as executable:
        if args.input:
            inputs = _load(args.input)
        else:
            inputs = random_inputs(executable.inputs, shapes_of(args), args.seed)
        outputs = executable.run(inputs)
        first = time.perf_counter() - start
        seconds = _median_seconds(lambda: executable.run(inputs))
        report = executable.report()
    console.print(placement_table(report))
    console.print(_answer_table(outputs))
    console.print(
        f"from file to first answer [bold]{first:.2f} s[/], then [bold]{seconds * 1e3:.2f} ms[/]"
        f" a run on {executable.threads} thread(s)"
    )
    if args.output:
        np.savez(args.output, allow_pickle=False, **outputs)
    return 0


def placement_table(report: Report) -> Table:
    """How many nodes of each kind went where."""
    table = Table(title="where each op ran", title_justify="left")
    for column in ("op", "placement", "as", "nodes", "reason"):
        table.add_column(column, justify="right" if column == "nodes" else "left")
    groups: dict[tuple[str, str, str, str], int] = {}
    for row in report:
        reason = row.reason if row.placement == "host" else ""
        key = (row.op_type, row.placement, row.composite, reason)
        groups[key] = groups.get(key, 0) + 1
    for (op_type, placement, composite, reason), count in groups.items():
        table.add_row(op_type, placement, composite, str(count), reason)
    return table


def _answer_table(outputs: dict[str, Any]) -> Table:
    table = Table(title="the answer", title_justify="left")
    for column in ("output", "type", "largest elements (flat index: value)"):
        table.add_column(column)
    for name, array in outputs.items():
        table.add_row(name, f"{array.dtype}{list(array.shape)}", _largest(array))
    return table


def _largest(array: Any, count: int = 5) -> str:
    if array.size == 0 or array.dtype.kind not in "iuf":
        return str(array)[:80]
    flat = array.reshape(-1)
    order = np.argsort(flat)[::-1][:count]
    return ", ".join(f"{index}: {flat[index]:.6g}" for index in order)


def _load(path: str) -> dict[str, Any]:
    try:
        with open_file(path, InvalidInputError) as file:
            return dict(np.load(file, allow_pickle=False))
    except (OSError, ValueError, TypeError, BadZipFile) as error:
        raise InvalidInputError(f"{path} is not an .npz file of arrays: {error}") from error


def _median_seconds(function: Any, budget: float = 1.0) -> float:
    times: list[float] = []
    deadline = time.perf_counter() + budget
    while len(times) < 3 or (time.perf_counter() < deadline and len(times) < 200):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
