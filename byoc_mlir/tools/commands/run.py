"""`byoc run`: compile or load a model, run it, show outputs, placement and latency."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from byoc_mlir.abi import Precision
from byoc_mlir.comparison import Difference, difference
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.progress import shown
from byoc_mlir.runtime.device_array import on_host
from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.verification import numbers
from byoc_mlir.tools.commands import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_inputs_arguments(parser)
    parser.add_argument("--output", metavar="FILE.npz", help="write the outputs there")
    parser.add_argument(
        "--compare",
        choices=get_args(Precision),
        help="also run in that precision, and show how far the outputs are from it",
    )
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    if args.compare and args.model.endswith(".so"):
        raise InvalidInputError(f"{args.model} is compiled already, in the precision that it has")
    start = time.perf_counter()
    with common.open_model(args, interpreter=True) as executable:
        inputs = common.inputs_of(args, executable.inputs)
        with shown("run"):
            outputs = executable.run(inputs)
            first = time.perf_counter() - start
            executable.wait()
            seconds = median_seconds(lambda: executable.run(inputs))
        report, outputs = executable.report(), on_host(outputs)
    apart: Mapping[str, Difference] = {}
    if args.compare:
        with common.open_model(_changed(args, precision=args.compare)) as other:
            apart = differences_of(outputs, on_host(other.run(inputs)))
    if args.output:
        np.savez(args.output, allow_pickle=False, **outputs)
    if args.json:
        common.print_json(
            {
                "report": json.loads(report.to_json()),
                "outputs": {name: _described(array) for name, array in outputs.items()},
                "differences": {name: numbers(one) for name, one in apart.items()},
                "seconds_to_first_answer": first,
                "milliseconds": seconds * 1e3,
                "threads": executable.threads,
            }
        )
        return 0
    console = Console(emoji=False)
    console.print(placement_table(report))
    console.print(_answer_table(outputs))
    if not Path(args.model).is_file():
        name = escape(args.model)
        console.print(f"{name} has synthetic weights: its times are real, not its answer")
    console.print(
        f"from file to first answer [bold]{first:.2f} s[/], then [bold]{seconds * 1e3:.2f} ms[/]"
        f" a run on {executable.threads} thread(s)"
    )
    if apart:
        console.print(difference_table(apart, args.compare))
    return 0


def _changed(args: argparse.Namespace, **values: str) -> argparse.Namespace:
    """Returns a copy of the arguments with some values changed."""
    return argparse.Namespace(**{**vars(args), **values})


def differences_of(outputs: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Difference]:
    """Returns the differences between numeric outputs and the expected ones."""
    return {
        name: difference(array, wanted[name])
        for name, array in outputs.items()
        if isinstance(array, np.ndarray) and array.dtype.kind in "biufV"
    }


def difference_table(differences: Mapping[str, Difference], precision: str) -> Table:
    """Returns a table of the differences between outputs and the outputs in another precision."""
    table = Table(title=f"difference from {precision}", title_justify="left")
    for column in ("output", "largest", "mean", "largest element"):
        table.add_column(column, justify="left" if column == "output" else "right")
    for name, found in differences.items():
        common.add_row(
            table, name, *(f"{one:.3g}" for one in (found.largest, found.mean, found.scale))
        )
    return table


def _described(array: Any) -> dict[str, object]:
    """Returns the type and shape of an output, and its elements if there are few."""
    if not isinstance(array, np.ndarray):
        return {"value": str(array)}
    typed = cast("NDArray[Any]", array)
    few = {"value": typed.tolist()} if typed.size <= _FEW and typed.dtype.kind in "biuf" else {}
    return {"dtype": str(typed.dtype), "shape": list(typed.shape), **few}


_FEW = 16


def placement_table(report: Report) -> Table:
    """Returns a table of the number of nodes by op type, placement and reason."""
    table = Table(title="where each op ran", title_justify="left")
    for column in ("op", "placement", "as", "nodes", "reason"):
        table.add_column(column, justify="right" if column == "nodes" else "left")
    groups: dict[tuple[str, str, str, str], int] = {}
    for row in report:
        reason = row.reason if row.placement == "host" else ""
        key = (row.op_type, row.placement, row.composite, reason)
        groups[key] = groups.get(key, 0) + 1
    for (op_type, placement, composite, reason), count in groups.items():
        common.add_row(table, op_type, placement, composite, str(count), reason)
    return table


def _answer_table(outputs: dict[str, Any]) -> Table:
    table = Table(title="the answer", title_justify="left")
    for column in ("output", "type", "largest elements (flat index: value)"):
        table.add_column(column)
    for name, array in outputs.items():
        common.add_row(table, name, f"{array.dtype}{list(array.shape)}", _largest(array))
    return table


def _largest(array: Any, count: int = 5) -> str:
    if array.size == 0 or array.dtype.kind not in "iuf":
        return str(array)[:80]
    flat = array.reshape(-1)
    order = np.argsort(flat)[::-1][:count]
    return ", ".join(f"{index}: {flat[index]:.6g}" for index in order)


def median_seconds(function: Any, budget: float = 1.0) -> float:
    """Returns the median time of a call, over as many calls as `budget` seconds allow."""
    times: list[float] = []
    deadline = time.perf_counter() + budget
    while len(times) < 3 or (time.perf_counter() < deadline and len(times) < 200):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
