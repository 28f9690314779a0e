"""`byoc explain`: show the path of one node through the compiler, or the matches of one pattern."""

from __future__ import annotations

import argparse

from byoc_mlir.progress import shown
from byoc_mlir.tools.commands import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--node", metavar="NAME", help="an ONNX node, named as in `byoc report`")
    subject.add_argument("--pattern", metavar="NAME", help="a backend's pattern")
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from byoc_mlir.compiler.debugging import explain  # slow, and the other commands do without

    request, shapes = common.request_of(args), common.shapes_of(args)
    with shown("explain"):
        if args.node is not None:
            found = explain.explain_node(request, args.node, shapes)
        else:
            found = explain.explain_pattern(request, args.pattern, shapes)
    print(found.to_json() if args.json else found)
    return 0
