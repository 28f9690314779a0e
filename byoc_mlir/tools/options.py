"""Options of `compile` on the command line: the options with an `OptionInfo.flag`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any
from zipfile import BadZipFile

import numpy as np

from byoc_mlir.backends import split_targets
from byoc_mlir.compiler.request import OPTIONS, OptionInfo, Request
from byoc_mlir.errors import ByocError, InvalidInputError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS, Limits

_DEFAULTS = vars(Request(b""))
_LIMITS = tuple(field.name for field in fields(Limits))
_NOTES = {
    "targets": "Separated by commas; '' for none",
    "limits": f"Names are {', '.join(_LIMITS)}",
}
"""Sentences that the help adds to the documentation of `compile`."""


def add_option_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds all options that have a flag."""
    for name, info in OPTIONS.items():
        if info.flag:
            add_option_argument(parser, name)


def add_option_argument(parser: argparse.ArgumentParser, name: str, **changed: Any) -> None:
    """Adds one option.

    Args:
        changed: arguments of `add_argument` that differ in this command.
    """
    info, default = OPTIONS[name], _DEFAULTS[name]
    flag, _, metavar = info.flag.partition(" ")
    words: dict[str, Any] = {"dest": name, "default": default, "help": _help(name, info)}
    if isinstance(default, bool):
        words["action"] = "store_true"
    elif info.choices:
        words["choices"] = info.choices
    else:
        words |= {"metavar": metavar, "type": _READ.get(name, str)}
    if info.is_repeated:
        words |= {"action": "append", "default": []}
    parser.add_argument(flag, **{**words, **changed})


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options given on the command line, as `compile` takes them."""
    return {
        name: _COLLECTED.get(name, _as_it_is)(value)
        for name, value in vars(args).items()
        if name in OPTIONS and OPTIONS[name].flag
    }


def limits_of(args: argparse.Namespace) -> Limits:
    """Returns the limits given on the command line."""
    return _limits(args.limits)


def at_least(least: int) -> Callable[[str], int]:
    """Returns a parser of integers of at least `least`, for `argparse`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number of {least} and more")
        return int(text)

    return read


def read_inputs(path: str) -> dict[str, Any]:
    """Reads the arrays of an `.npz` file, by name.

    Raises:
        InvalidInputError: the file is no such archive.
    """
    try:
        with open_file(path, InvalidInputError) as file:
            return dict(np.load(file, allow_pickle=False))
    except (OSError, ValueError, TypeError, BadZipFile) as error:
        raise InvalidInputError(f"{path} is not an .npz file of arrays: {error}") from error


def _help(name: str, info: OptionInfo) -> str:
    """Returns the documentation of an option, without Markdown's backticks."""
    meaning = " ".join(info.meaning.split())
    notes = [meaning.replace("`", "").replace('"', "").replace("%", "%%")]
    default = _DEFAULTS[name]
    if name in _NOTES:
        notes.append(f"{_NOTES[name]}.")
    if info.is_repeated:
        notes.append("May be given several times.")
    elif isinstance(default, str | float):
        notes.append(f"Default: {default}.")
    return " ".join(notes)


def _size(text: str) -> tuple[str, int]:
    """Parses the dimension and the size of `batch=8`."""
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE")
    return name, int(size)


def _limit(text: str) -> tuple[str, float]:
    """Parses the limit and the number of `nodes=1000`."""
    name, _, value = text.partition("=")
    try:
        number = float(value) if name == "seconds" else int(value)
        if name in _LIMITS:
            replace(DEFAULT_LIMITS, **{name: number})
            return name, number
    except (ValueError, ByocError) as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from error
    raise argparse.ArgumentTypeError(f"there is no limit '{name}'; names are {', '.join(_LIMITS)}")


def _pair(text: str) -> tuple[str, str]:
    """Parses `NAME=VALUE`."""
    name, is_there, value = text.partition("=")
    if not (name and is_there and value):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=DEVICE")
    return name, value


def _targets(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else split_targets(text)


def _limits(settings: list[tuple[str, float]]) -> Limits:
    return replace(DEFAULT_LIMITS, **dict(settings))


def _samples(paths: list[str]) -> list[dict[str, Any]] | None:
    return [read_inputs(path) for path in paths] or None


def _as_it_is(value: Any) -> Any:
    return value


_READ: Mapping[str, Callable[[str], Any]] = {
    "threads": at_least(1),
    "weight_memory": float,
    "sizes": _size,
    "resident": _pair,
    "limits": _limit,
}
"""Parser of each option whose argument is no plain text."""

_COLLECTED: Mapping[str, Callable[[Any], Any]] = {
    "targets": _targets,
    "sizes": dict,
    "resident": dict,
    "limits": _limits,
    "samples": _samples,
}
"""Converter of each option whose value for `compile` differs from the parsed arguments."""
