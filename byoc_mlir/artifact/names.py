"""C identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from byoc_mlir.errors import ExportError

_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while bool true false nullptr class delete new private protected public
    template this throw try catch namespace operator using virtual
    linux unix errno stdin stdout stderr
"""
_KEYWORDS = frozenset(_C_WORDS.split())
"""Keywords of C and C++, and macros that compilers define."""


def unique_identifiers(names: Sequence[str]) -> list[str]:
    """Returns a distinct lower-case identifier for each name: `images:0` becomes `images_0`."""
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        base = _identifier(name) or "tensor"
        if base in _KEYWORDS:
            base += "_"
        candidate, number = base, 1
        while candidate in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(candidate)
        found.append(candidate)
    return found


def model_name(stem: str) -> str:
    """Returns the prefix of a model's C functions, derived from its file's name: `resnet_50` for
    `libresnet-50`.

    Raises:
        ExportError: the name has no character for an identifier.
    """
    name = _identifier(stem.removeprefix("lib") or stem)
    if not name:
        raise ExportError(
            f"no C name can be made of the file name '{stem}'; give one with name=, such as 'model'"
        )
    return name


def checked_name(name: str) -> str:
    """Returns a prefix chosen by the user, after the check that it is a C identifier.

    Raises:
        ExportError: the prefix is no C identifier.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name.startswith("byoc"):
        raise ExportError(
            f"name is {name!r}; accepted are identifiers of C that do not begin with 'byoc'"
        )
    return name


def _identifier(text: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()
    return f"n{cleaned}" if cleaned[:1].isdigit() else cleaned
