"""Passes of users: found by name, registered in the process or installed as an entry point.

`compile(passes=…)` runs them; see docs/passes.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TypeVar

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from byoc_mlir.errors import ByocError
from byoc_mlir.names import meant
from byoc_mlir.plugins import Plugins

ENTRY_POINT_GROUP = "byoc_mlir.passes"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_passes = Plugins("pass", ModulePass, ENTRY_POINT_GROUP)

AnyPass = TypeVar("AnyPass", bound=ModulePass)


def register_pass(cls: type[AnyPass]) -> type[AnyPass]:
    """Registers a pass under its `name`; usable as a decorator.

    A class that is defined again, as in a notebook, replaces its earlier version.

    Raises:
        ByocError: the class is no pass, or its name is malformed or taken.
    """
    _passes.check(cls, "xdsl.passes.ModulePass")
    name: object = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ByocError(
            f"pass {cls.__name__}: `name` must be lower-case words with hyphens, as"
            f" 'my-pass', found {name!r}"
        )
    _passes.add(name, cls)
    return cls


def registered_passes() -> Mapping[str, type[ModulePass]]:
    """Returns the classes that are registered in the process, by name."""
    return dict(_passes.registered)


def user_pass_names() -> list[str]:
    """Returns the names of all known passes of users, sorted."""
    return _passes.names()


def user_pass(name: str) -> type[ModulePass]:
    """Returns the pass of a user with this name.

    Raises:
        ByocError: there is no such pass, or it cannot be imported.
    """
    found = _passes.find(name, lambda point: register_pass(_loaded(point)))
    if found is None:
        known = ", ".join(user_pass_names()) or "none"
        raise ByocError(
            f"no pass of a user is named '{name}'; known are {known}"
            f"{meant(name, user_pass_names())}; @byoc_mlir.register_pass, or an entry point"
            f" '{ENTRY_POINT_GROUP}', makes one known"
        )
    return found


def passes_of(specs: Sequence[str]) -> tuple[ModulePass, ...]:
    """Returns the passes of a list such as `("my-pass", "my-pass{factor=2}")`.

    Raises:
        ByocError: a pass is unknown, its text is malformed, or it does not accept its options.
    """
    return tuple(_pass_of(spec, text) for text in specs for spec in _parsed(text))


def names_of(specs: Sequence[str]) -> list[str]:
    """Returns the names of the passes in `specs`; the argument and the errors are as for
    `passes_of`.
    """
    return [spec.name for text in specs for spec in _parsed(text)]


def _parsed(text: str) -> list[ArgSpec]:
    try:
        return list(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise ByocError(
            f"passes has '{text}', accepted is a name, or a name with options as in"
            " 'name{key=value other=value}'"
        ) from error


def _pass_of(spec: ArgSpec, text: str) -> ModulePass:
    kind = user_pass(spec.name)
    try:
        return kind.from_spec(spec)
    except Exception as error:  # its constructor is a user's code
        raise ByocError(f"pass '{text}': {error}") from error


def _loaded(point: EntryPoint) -> type[ModulePass]:
    try:
        return point.load()
    except Exception as error:  # a user's code
        detail = f"{type(error).__name__}: {error}"
        raise ByocError(f"pass '{point.name}' cannot be loaded: {detail}") from error
