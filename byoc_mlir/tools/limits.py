"""The argument `--limit NAME=VALUE` of the commands."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

from byoc_mlir.errors import ByocError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits

_NAMES = tuple(field.name for field in fields(Limits))


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the argument; `limits_of` reads it."""
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help=f"how much the model may ask for; names are {', '.join(_NAMES)}",
    )


def limits_of(args: argparse.Namespace) -> Limits:
    """The limits that the arguments say."""
    return replace(DEFAULT_LIMITS, **dict(args.limit))


def _setting(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value) if name == "seconds" else int(value)
        if name in _NAMES:
            replace(DEFAULT_LIMITS, **{name: number})
            return name, number
    except (ValueError, ByocError) as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from error
    raise argparse.ArgumentTypeError(f"there is no limit '{name}'; names are {', '.join(_NAMES)}")
