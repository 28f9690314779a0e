"""`byoc bisect`: find the pattern, pass or backend without which a model is right."""

from __future__ import annotations

import argparse

from byoc_mlir.progress import shown
from byoc_mlir.tools.commands.common import compile_model, inputs_of
from byoc_mlir.tools.commands.verify import add_compared_arguments, options_of, save_part

add_arguments = add_compared_arguments


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand; 1 if an output differs."""
    options = options_of(args)
    with compile_model(args) as executable, shown("bisect"):
        found = executable.bisect(inputs_of(args, executable.inputs), **options)
    print(found.to_json() if args.json else found)
    save_part(args, found.verification)
    return 0 if found.verification.agrees else 1
