"""Names that users write: the nearest one that there is, and where the named was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any


def meant(name: str, known: Iterable[str]) -> str:
    """What to add to a message about an unknown name: `; did you mean 'x'?`, or nothing."""
    close = get_close_matches(name, sorted(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def written_at(thing: type | Callable[..., Any]) -> tuple[str, str]:
    """The module and the name in it of a class or a function: alike for its later versions."""
    return thing.__module__, thing.__qualname__
