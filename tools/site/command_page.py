"""Reference of the commands: the output of `--help`, at 80 columns."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from unittest.mock import patch

from page import Page, code

from byoc_mlir.tools import byoc, byoc_opt

_INTRODUCTION = """\
`byoc` compiles and examines models, `byoc-opt` runs passes over IR. The exit code is 0, 1 after an
error, 2 where the arguments are wrong.
"""

_ALL_PASSES = re.compile(r"(available passes are:)[\w\s,-]*?(?=\n  --)", re.IGNORECASE)


def command_page() -> Page:
    """Returns the page of all commands."""
    names = [command.__name__.rpartition(".")[2] for command in byoc.COMMANDS]
    commands = [name.strip("_").replace("_", "-") for name in names]
    sections = [
        _section("byoc", byoc.main, []),
        *(_section(f"byoc {name}", byoc.main, [name]) for name in commands),
        _section("byoc-opt", byoc_opt.main, []),
    ]
    return Page(
        "Commands",
        "reference/commands.md",
        "\n".join([f"# Commands\n\n{_INTRODUCTION}", *sections]),
    )


def _section(title: str, main: Callable[[Sequence[str]], int], args: Sequence[str]) -> str:
    return f"## {title}\n\n{code(_help(title, main, args), 'text')}"


def _help(title: str, main: Callable[[Sequence[str]], int], args: Sequence[str]) -> str:
    """Returns the help of a command, without `byoc-opt`'s list of all passes, which xDSL's are in,
    too.
    """
    printed = io.StringIO()
    program = patch("sys.argv", [title.partition(" ")[0]])
    columns = patch.dict(os.environ, {"COLUMNS": "80"})
    with columns, program, redirect_stdout(printed), suppress(SystemExit):  # so argparse ends
        main([*args, "--help"])
    return _ALL_PASSES.sub(r"\1\n                        see Passes", printed.getvalue())
