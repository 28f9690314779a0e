"""`byoc cache`: show or clear the cache of compiled models."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.markup import escape

from byoc_mlir.compiler.cache.folder import (
    FOLDER_VARIABLE,
    SIZE_VARIABLE,
    SWITCH_VARIABLE,
    Cache,
)
from byoc_mlir.tools.commands.common import add_json_argument, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("folder", nargs="?", help="default: the one that compilations use")
    parser.add_argument("--clear", action="store_true", help="delete all of it")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    cache = Cache.open(args.folder, "calibration")
    if args.json:
        return _print_json(cache, clear=args.clear)
    console = Console(soft_wrap=True, highlight=False)
    if cache is None:
        console.print(
            f"nothing is cached: {SWITCH_VARIABLE} is off, or the user's folder cannot be used;"
            f" {FOLDER_VARIABLE} names another one"
        )
        return 0
    console.print(escape(describe(cache)) + (", deleted" if args.clear else ""))
    if args.clear:
        cache.clear()
        return 0
    for variable, meaning in (
        (FOLDER_VARIABLE, "names another folder"),
        (SIZE_VARIABLE, "the bytes that it may hold; what was not used for longest goes first"),
        (
            SWITCH_VARIABLE,
            "off: nothing is cached; calibration: how fast the machine is, and no programs",
        ),
    ):
        console.print(f"  {variable:<16} {meaning}")
    console.print(f"  {'byoc cache --clear':<16} deletes all; deleting files by hand is as good")
    return 0


def _print_json(cache: Cache | None, *, clear: bool) -> int:
    found = None
    if cache is not None:
        entries = cache.entries()
        size = sum(entry.size for entry in entries)
        found = {"folder": str(cache.folder), "files": len(entries), "bytes": size}
        found |= {"limit": cache.limit, "cleared": clear}
    print_json({"cache": found})
    if cache is not None and clear:
        cache.clear()
    return 0


def describe(cache: Cache) -> str:
    """Returns one line with the folder and the size of a cache."""
    entries = cache.entries()
    size = sum(entry.size for entry in entries)
    return (
        f"{cache.folder}: {len(entries)} files, {size / 1e6:.1f} MB of {cache.limit / 1e6:.0f} MB"
    )
