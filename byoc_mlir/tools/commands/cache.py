"""`byoc cache`: what the cache of compiled models holds, and emptying it."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.markup import escape

from byoc_mlir.compiler.cache.folder import FOLDER_VARIABLE, Cache
from byoc_mlir.errors import InvalidInputError


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("cache", help=__doc__)
    parser.add_argument("folder", nargs="?", help=f"default: ${FOLDER_VARIABLE}")
    parser.add_argument("--clear", action="store_true", help="delete all of it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    cache = Cache.open(args.folder)
    if cache is None:
        raise InvalidInputError(f"name the folder of the cache, or set {FOLDER_VARIABLE}")
    entries = cache.entries()
    size = sum(entry.size for entry in entries)
    if args.clear:
        cache.clear()
    Console().print(
        f"{escape(str(cache.folder))}: {len(entries)} files, {size / 1e6:.1f} MB of"
        f" {cache.limit / 1e6:.0f} MB{', deleted' if args.clear else ''}",
        soft_wrap=True,
        highlight=False,
    )
    return 0
