"""`byoc demo`: compile the network that comes with the package and read a handwritten digit."""

from __future__ import annotations

import argparse
import json
import time

from rich.console import Console
from rich.markup import escape

import byoc_mlir
from byoc_mlir.digits import MODEL, as_input, drawn, unseen
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.progress import shown
from byoc_mlir.tools.commands.common import add_json_argument, print_json
from byoc_mlir.tools.commands.run import median_seconds, placement_table
from byoc_mlir.tools.options import at_least

SEVEN = 19
"""Index of a picture of a seven."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument(
        "--picture",
        type=at_least(0),
        default=SEVEN,
        metavar="NUMBER",
        help="which of the 450 pictures that the network was not trained on (default: %(default)s)",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    pictures, labels = unseen()
    if args.picture >= len(pictures):
        raise InvalidInputError(
            f"there is no picture {args.picture}; there are 0 to {len(pictures) - 1}"
        )
    inputs = {"picture": as_input(pictures[args.picture])}
    start = time.perf_counter()
    with shown("demo"), byoc_mlir.compile(MODEL) as executable:
        (probabilities,) = executable.run(inputs)["probabilities"]
        first = time.perf_counter() - start
        executable.wait()
        seconds = median_seconds(lambda: executable.run(inputs))
        report = executable.report()
        compared = executable.verify(inputs)
    answer, label = int(probabilities.argmax()), int(labels[args.picture])
    largest = compared.outputs[0].difference.largest
    if args.json:
        print_json(
            {
                "answer": answer,
                "probability": float(probabilities[answer]),
                "label": label,
                "compared_with": compared.against,
                "largest_difference": largest,
                "report": json.loads(report.to_json()),
                "seconds_to_first_answer": first,
                "milliseconds": seconds * 1e3,
            }
        )
        return 0
    console = Console(emoji=False)
    console.print(escape(drawn(pictures[args.picture])), highlight=False)
    console.print(
        f"[bold]{answer} ({100 * probabilities[answer]:.1f} %)[/]; the writer meant {label}"
    )
    console.print(placement_table(report))
    console.print(f"largest difference from {escape(compared.against)}: {largest:.1e}")
    console.print(
        f"first answer after [bold]{first:.2f} s[/], then [bold]{seconds * 1e6:.0f} µs[/] a run"
    )
    return 0
