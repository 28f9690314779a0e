"""`byoc check`: list the nodes of a model that cannot be compiled, by op."""

from __future__ import annotations

import argparse

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.progress import shown
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import add_option_argument, limits_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_argument(parser)
    common.add_shape_argument(parser)
    add_option_argument(parser, "limits")
    parser.add_argument("--all", action="store_true", help="also list what can be compiled")
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand; 1 if some node is not supported."""
    from byoc_mlir.compiler.debugging.check import (
        check_model,  # slow, and the other commands do without
    )

    path = common.find_model(args.model)
    if path.suffix == ".mlir":
        raise InvalidModelError(f"{path} has no ONNX nodes; byoc check reads .onnx files")
    with shown("check"):
        found = check_model(path, common.shapes_of(args), limits_of(args))
    print(found.to_json() if args.json else found.text(every=args.all))
    return 0 if found.is_supported else 1
