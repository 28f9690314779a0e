"""Pages that are generated when the site is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """Page in Markdown."""

    title: str
    path: str
    """Path below the folder of the docs."""
    text: str


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown; bars inside of cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def code(text: str, language: str = "") -> str:
    """Returns a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"
