"""`byoc`: run, report on, and time ONNX models from the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from byoc_mlir import __version__
from byoc_mlir.boundary import boundary
from byoc_mlir.errors import ByocError
from byoc_mlir.tools.commands import (
    bench,
    bisect,
    cache,
    check,
    compile_,
    completion,
    demo,
    doctor,
    explain,
    new_backend,
    profile,
    report,
    run,
    serve,
    signature,
    tune,
    verify,
    view,
)
from byoc_mlir.tools.parser import Parser
from byoc_mlir.tools.words import on_command_line

COMMANDS = (
    *(demo, run, compile_, report, view, bench, profile, verify, bisect, explain),
    *(check, signature, cache, doctor, new_backend, serve, tune, completion),
)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the `byoc` command; returns 0 on success, 1 on a user's error, 2 on bad usage."""
    parser = Parser(prog="byoc", description=__doc__)
    parser.add_argument("--version", action="version", version=f"byoc_mlir {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2].strip("_").replace("_", "-")
        subparser = commands.add_parser(name, help=command.__doc__)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, parser=subparser, parsers=commands.choices)
    chosen = parser.parsed(args)
    try:
        with boundary(f"byoc {chosen.command}"):
            return chosen.run(chosen)
    except ByocError as error:
        Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(
            f"[bold red]error:[/] {type(error).__name__}: {escape(on_command_line(str(error)))}"
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
