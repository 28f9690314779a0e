"""Why a pattern does not match."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from byoc_mlir.patterns.language import AltPattern, CallPattern, Pattern
from byoc_mlir.patterns.matcher import all_matches
from byoc_mlir.patterns.scope import Scope


@dataclass(frozen=True)
class Miss:
    """How near a pattern came to a match."""

    fitted: int
    """How many of its parts fitted; -1 for a pattern that describes no op."""
    reason: str
    """Why the next one did not."""


def nearest_miss(pattern: Pattern, op: Operation, scope: Scope | None = None) -> Miss | None:
    """Where `pattern` does not fit the graph above `op`; `None` if it matches.

    Of several ways to match, it is the one that got furthest.
    """
    nearest = Miss(-1, f"the pattern {pattern} describes no op")

    def note(fitted: int, reason: str) -> None:
        nonlocal nearest
        if fitted > nearest.fitted:
            nearest = Miss(fitted, reason)

    if next(all_matches(pattern, op, scope, note), None) is not None:
        return None
    return nearest


def explain_match(pattern: Pattern, op: Operation, scope: Scope | None = None) -> str | None:
    """The first edge where `pattern` does not fit the graph above `op`; `None` if it matches.

    Of several ways to match, the one that got furthest is explained.
    """
    miss = nearest_miss(pattern, op, scope)
    return None if miss is None else miss.reason


def pattern_text(pattern: Pattern) -> str:
    """A pattern with all its parts, `nn.relu(nn.conv2d(*, *))`; a part that it has in two places is
    written out once.
    """
    return _text(pattern, set())


def _text(pattern: Pattern, seen: set[Pattern]) -> str:
    if isinstance(pattern, AltPattern):
        return f"({_text(pattern.first, seen)} or {_text(pattern.second, seen)})"
    if not isinstance(pattern, CallPattern):
        inner = list(pattern.children)
        return _text(inner[0], seen) if len(inner) == 1 else str(pattern)
    if pattern in seen:
        return f"{pattern}(…)"
    seen.add(pattern)
    if pattern.args is None:
        return str(pattern)
    head = f"({pattern})" if " " in str(pattern) else str(pattern)
    return f"{head}({', '.join(_text(one, seen) for one in pattern.args)})"
