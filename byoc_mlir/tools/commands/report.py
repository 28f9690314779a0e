"""`byoc report`: where every ONNX node went, and why."""

from __future__ import annotations

import argparse
from typing import Any

from byoc_mlir.tools.commands.common import (
    add_model_arguments,
    add_shape_argument,
    compile_model,
    shapes_of,
)


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("report", help=__doc__)
    add_model_arguments(parser)
    add_shape_argument(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with compile_model(args) as executable:
        if args.shape:
            executable.warmup(shapes_of(args))
        report = executable.report()
    print(report.to_json() if args.json else report)
    return 0
