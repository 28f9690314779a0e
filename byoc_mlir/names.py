"""Names from users or models: the nearest known one, their origin, their form for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast


def printable(text: str) -> str:
    """Returns the text in one line, with escapes such as `\\x1b` for control and invisible
    characters.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def printable_lines(text: str) -> str:
    """Returns the text with each line printable and the later ones indented.

    A name with a line break cannot begin a line that looks like another message.
    """
    first, *others = (printable(line) for line in text.split("\n"))
    indent = "" if all(line.startswith("  ") for line in others if line) else "  "
    return "\n".join([first, *(f"{indent}{line}".rstrip() for line in others)])


def printable_document(value: Any) -> Any:
    """Returns a document for JSON with each text printable, line by line."""
    if isinstance(value, str):
        return "\n".join(map(printable, value.split("\n")))
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {printable(key): printable_document(one) for key, one in fields.items()}
    if isinstance(value, list | tuple):
        return [printable_document(one) for one in cast("Sequence[Any]", value)]
    return value


def meant(name: str, known: Iterable[str]) -> str:
    """Returns a hint for an unknown name, `; did you mean 'x'?`, or ""."""
    from difflib import get_close_matches  # errors only

    close = get_close_matches(name, sorted(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def written_at(thing: type | Callable[..., Any]) -> tuple[str, str]:
    """Returns module and qualified name of a class or function, which are equal for its later
    versions.
    """
    return thing.__module__, thing.__qualname__
