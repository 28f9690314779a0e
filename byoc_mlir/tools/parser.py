"""Parser of the command line, which suggests names for misspelt ones."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from byoc_mlir.names import meant

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
