"""`byoc signature`: list the inputs of a model with types and shapes, and its outputs."""

from __future__ import annotations

import argparse

from byoc_mlir.limits import limited
from byoc_mlir.names import printable
from byoc_mlir.progress import shown
from byoc_mlir.tools.commands.common import (
    add_json_argument,
    add_model_argument,
    find_model,
    print_json,
)
from byoc_mlir.tools.options import add_option_argument, limits_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    add_model_argument(parser)
    add_option_argument(parser, "limits")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from byoc_mlir.compiler.source import read_source  # slow, and the other commands do without

    path = find_model(args.model)
    with shown("signature"), limited(limits_of(args)):
        source = read_source(path)
    if args.json:
        inputs = {one.name: [str(one.dtype), *one.shape] for one in source.inputs}
        print_json({"inputs": inputs, "outputs": source.outputs})
        return 0
    for one in source.inputs:
        print(printable(f"input {one}"))
    for name in source.outputs:
        print(printable(f"output {name}"))
    return 0
