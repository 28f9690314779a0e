"""`byoc run`: compile or load a model, run it, show the answer, placement and latency."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from byoc_mlir.comparison import difference
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.report import Report
from byoc_mlir.tools.commands.common import (
    add_model_arguments,
    add_shape_argument,
    at_least,
    open_model,
    random_inputs,
    read_inputs,
    shapes_of,
)
from byoc_mlir.transforms.to_mixed_precision import Precision


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("run", help=__doc__)
    add_model_arguments(parser)
    parser.add_argument("--input", metavar="FILE.npz", help="inputs by name (default: random)")
    add_shape_argument(parser)
    parser.add_argument("--output", metavar="FILE.npz", help="write the outputs there")
    parser.add_argument(
        "--compare",
        choices=get_args(Precision),
        help="also run in that precision, and show how far the outputs are from it",
    )
    parser.add_argument("--seed", type=at_least(0), default=0, help="of random inputs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    if args.compare and args.model.endswith(".so"):
        raise InvalidInputError(f"{args.model} is compiled already, in the precision that it has")
    console = Console()
    start = time.perf_counter()
    with open_model(args) as executable:
        if args.input:
            inputs = read_inputs(args.input)
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
    if args.compare:
        with open_model(_changed(args, precision=args.compare)) as executable:
            console.print(difference_table(outputs, executable.run(inputs), args.compare))
    if args.output:
        np.savez(args.output, allow_pickle=False, **outputs)
    return 0


def _changed(args: argparse.Namespace, **values: str) -> argparse.Namespace:
    """The arguments, some of them with other values."""
    return argparse.Namespace(**{**vars(args), **values})


def difference_table(
    outputs: Mapping[str, NDArray[Any]], wanted: Mapping[str, NDArray[Any]], precision: str
) -> Table:
    """How far outputs are from those in another precision.

    Elements that are NaN in both, or the same infinity, do not differ.
    """
    table = Table(title=f"difference from {precision}", title_justify="left")
    for column in ("output", "largest", "mean", "largest element"):
        table.add_column(column, justify="left" if column == "output" else "right")
    for name, array in outputs.items():
        if array.dtype.kind not in "biufV":
            continue
        found = difference(array, wanted[name])
        numbers = (found.largest, found.mean, found.scale)
        table.add_row(name, *(f"{number:.3g}" for number in numbers))
    return table


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


def _median_seconds(function: Any, budget: float = 1.0) -> float:
    times: list[float] = []
    deadline = time.perf_counter() + budget
    while len(times) < 3 or (time.perf_counter() < deadline and len(times) < 200):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
