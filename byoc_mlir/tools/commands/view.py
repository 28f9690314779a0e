"""`byoc view`: write a page with the placement of nodes, times, IR and code."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from byoc_mlir.progress import shown
from byoc_mlir.runtime import Executable
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        type=Path,
        default=Path("report.html"),
        help="the page; default: report.html",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="run the model, so that nodes can be coloured by time",
    )
    parser.add_argument("--runs", type=at_least(1), default=20, help="of a profile")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare each node with an oracle, so that nodes can be coloured by error",
    )
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    with TemporaryDirectory() as folder, shown("view"):
        text = _loaded_page(args) if args.model.endswith(".so") else _page(args, Path(folder))
    size = args.output.write_bytes(text.encode())
    if args.json:
        common.print_json({"file": str(args.output), "bytes": size})
    else:
        print(f"wrote {args.output}, {size / 1e6:.1f} MB; open it in a browser")
    return 0


def _page(args: argparse.Namespace, dump: Path) -> str:
    with common.compile_model(args, profile=args.profile, dump_ir=dump) as executable:
        return _drawn(args, executable, dump)


def _loaded_page(args: argparse.Namespace) -> str:
    """Returns the page of a compiled file, which has no IR."""
    with common.open_model(args) as executable:
        return _drawn(args, executable, None)


def _drawn(args: argparse.Namespace, executable: Executable, dump: Path | None) -> str:
    profile = verification = None
    if args.profile or args.verify:
        inputs = common.random_inputs(executable.inputs, common.shapes_of(args))
        profile = executable.profile(inputs, args.runs) if args.profile else None
        verification = executable.verify(inputs, nodes=True) if args.verify else None
    elif args.shape:
        executable.warmup(common.shapes_of(args))
    return executable.report().to_html(
        Path(args.model).stem, profile=profile, verification=verification, dump=dump
    )
