"""`byoc profile`: show the time of each step of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from byoc_mlir.progress import shown
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    parser.add_argument("--runs", type=at_least(1), default=20, help="the median one is shown")
    common.add_annotate_argument(parser)
    common.add_json_argument(parser)
    parser.add_argument(
        "--trace", metavar="FILE.json", type=Path, help="write a trace for Perfetto, too"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with common.open_model(args, profile=True) as executable:
        inputs = common.random_inputs(executable.inputs, common.shapes_of(args))
        with shown("profile"):
            profile = executable.profile(inputs, args.runs)
        common.annotate(args, executable.report(), profile)
    if args.trace is not None:
        args.trace.write_text(profile.to_chrome_trace())
    print(profile.to_json() if args.json else profile)
    return 0
