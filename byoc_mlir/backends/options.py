"""Options of backends: how they are declared, written in a target, and checked.

A target is a backend's name with options behind it, `mine{mode=fast, tiles=4}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_mlir.errors import BackendError

Setting: TypeAlias = bool | int | float | str
"""The value of an option."""

_TARGET = re.compile(r"\s*(?P<name>[^\s{},]+)\s*(?:\{(?P<options>[^{}]*)\})?\s*")
_OPTION = re.compile(r'[\s,]*(?P<key>[^\s=,"]+)=(?P<value>"[^"]*"|[^\s,"]*)[\s,]*')
_BETWEEN_TARGETS = re.compile(r",(?![^{}]*\})")


@dataclass(frozen=True)
class Option:
    """An option that a backend accepts; values have the type of its default."""

    default: Setting
    description: str
    choices: tuple[Setting, ...] = ()
    """Accepted values; if empty, all values of the default's type."""

    @property
    def accepted(self) -> str:
        """Returns the accepted values in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if self.choices:
            return " or ".join(map(written, self.choices))
        return {int: "an integer", float: "a number", str: "a text"}[type(self.default)]

    def read(self, value: Setting) -> Setting | None:
        """Returns the setting that `value`, or the text of a value, denotes; `None` if it is not
        accepted.
        """
        found = _read_as(type(self.default), value)
        return found if not self.choices or found in self.choices else None


@dataclass(frozen=True)
class Target:
    """A backend's name and the options given with it, not checked yet."""

    name: str
    options: Mapping[str, Setting] = field(default_factory=dict[str, Setting])

    @staticmethod
    def parse(text: str) -> Target:
        """Reads `name` or `name{key=value, key=value}`; a value with spaces stands in quotes.

        Raises:
            BackendError: it is of another form.
        """
        match = _TARGET.fullmatch(text)
        if match is None:
            raise BackendError(_malformed(text))
        options: dict[str, Setting] = {}
        rest = match["options"] or ""
        while rest.strip():
            option = _OPTION.match(rest)
            if option is None or option["key"] in options:
                raise BackendError(_malformed(text))
            options[option["key"]] = option["value"].strip('"')
            rest = rest[option.end() :]
        return Target(match["name"], options)

    def __str__(self) -> str:
        if not self.options:
            return self.name
        options = " ".join(f"{key}={_quoted(value)}" for key, value in sorted(self.options.items()))
        return f"{self.name}{{{options}}}"


def split_targets(text: str) -> tuple[str, ...]:
    """Splits a list of targets such as `dnnl{winograd=off},mine`; an empty text has none."""
    return tuple(part.strip() for part in _BETWEEN_TARGETS.split(text) if part.strip())


def settings_of(
    backend: str, declared: Mapping[str, Option], given: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Returns the value of each declared option: the given one or the default.

    Raises:
        BackendError: an option is unknown, or its value is not accepted; the message lists all.
    """
    settings = {name: option.default for name, option in declared.items()}
    for name, value in given.items():
        if name not in declared:
            raise BackendError(f"backend '{backend}' has no option '{name}'; {_listed(declared)}")
        setting = declared[name].read(value)
        if setting is None:
            raise BackendError(
                f"option '{name}' of backend '{backend}' is {written(value)}, accepted is"
                f" {declared[name].accepted} ({declared[name].description})"
            )
        settings[name] = setting
    return settings


def describe_options(declared: Mapping[str, Option]) -> Sequence[str]:
    """Returns a line for each option: name, default, accepted values, description."""
    return [
        f"{name}={written(option.default)} ({option.accepted}): {option.description}"
        for name, option in declared.items()
    ]


def written(value: Setting) -> str:
    """Returns the text of a setting as it is written in a target."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_as(type_: type[Setting], value: Setting) -> Setting | None:
    if type_ is bool:
        return value if isinstance(value, bool) else _BOOLEANS.get(str(value).lower())
    if type_ is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool):
        return None
    try:
        return int(str(value)) if type_ is int else float(value)
    except ValueError:
        return None


_BOOLEANS = {"true": True, "on": True, "false": False, "off": False}


def _quoted(value: Setting) -> str:
    text = written(value)
    return text if re.fullmatch(r'[^\s,{}"]+', text) else f'"{text}"'


def _listed(declared: Mapping[str, Option]) -> str:
    return f"it accepts {'; '.join(describe_options(declared))}" if declared else "it has none"


def _malformed(text: str) -> str:
    return (
        f"target '{text}' cannot be read; expected a backend's name, or a name with options as in"
        " 'name{key=value, other=value}', each option once"
    )
