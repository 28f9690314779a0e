"""`byoc profile`: show the time of each step of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from byoc_mlir.progress import shown
from byoc_mlir.tools.commands.common import (
    add_annotate_argument,
    add_json_argument,
    add_model_arguments,
    add_shape_argument,
    annotate,
    open_model,
    random_inputs,
    shapes_of,
)
from byoc_mlir.tools.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    add_model_arguments(parser)
    add_shape_argument(parser)
    parser.add_argument("--runs", type=at_least(1), default=20, help="the median one is shown")
    add_annotate_argument(parser)
    add_json_argument(parser)
    parser.add_argument(
        "--trace", metavar="FILE.json", type=Path, help="write a trace for Perfetto, too"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with open_model(args, profile=True) as executable:
        inputs = random_inputs(executable.inputs, shapes_of(args))
        with shown("profile"):
            profile = executable.profile(inputs, args.runs)
        annotate(args, executable.report(), profile)
    if args.trace is not None:
        args.trace.write_text(profile.to_chrome_trace())
    print(profile.to_json() if args.json else profile)
    return 0
