"""`byoc`: run, report on, and time ONNX models from the command line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape

from byoc_mlir import __version__
from byoc_mlir.boundary import boundary
from byoc_mlir.errors import ByocError
from byoc_mlir.names import meant
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
    tune,
    verify,
    view,
)
from byoc_mlir.tools.words import on_command_line

COMMANDS = (
    *(demo, run, compile_, report, view, bench, profile, verify, bisect, explain),
    *(check, cache, doctor, new_backend, serve, tune, completion),
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


_CHOICE = re.compile(r"invalid choice: '(?P<found>[^']*)' \(choose from (?P<names>.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<found>--?[^\s=]+)")


class Parser(argparse.ArgumentParser):
    """Parser of `argparse` whose messages end with the nearest known name."""

    _options: tuple[str, ...] = ()

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Adds an argument and records the names of options, for suggestions."""
        self._options += tuple(name for name in names if str(name).startswith("-"))
        return super().add_argument(*names, **options)

    def parsed(self, args: Sequence[str] | None) -> argparse.Namespace:
        """Returns the parsed arguments; the parser of the subcommand reports unknown ones."""
        found, unknown = self.parse_known_args(args)
        if unknown:
            chosen: Parser = getattr(found, "parser", self)
            chosen.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Exits with 2, after the usage and the message."""
        super().error(f"{message}{self._guess(message)}")

    def _guess(self, message: str) -> str:
        if choice := _CHOICE.search(message):
            return meant(choice["found"], re.findall(r"[^\s,']+", choice["names"]))
        unknown = _UNKNOWN.search(message)
        return meant(unknown["found"], self._options) if unknown else ""


if __name__ == "__main__":
    sys.exit(main())
