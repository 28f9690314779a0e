"""Names that users write: the nearest one that there is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, known: Iterable[str]) -> str:
    """What to add to a message about an unknown name: `; did you mean 'x'?`, or nothing."""
    close = get_close_matches(name, sorted(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""
