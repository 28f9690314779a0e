"""Why a pattern does not match."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.language import AltPattern, CallPattern, Pattern
from byoc_mlir.patterns.matching import all_matches
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

    try:
        matched = next(all_matches(pattern, op, scope, note), None) is not None
    except BackendError:
        return nearest  # of the ways that were tried
    return None if matched else nearest


def explain_match(pattern: Pattern, op: Operation, scope: Scope | None = None) -> str | None:
    """The first edge where `pattern` does not fit the graph above `op`; `None` if it matches.

    Of several ways to match, the one that got furthest is explained.
    """
    miss = nearest_miss(pattern, op, scope)
    return None if miss is None else miss.reason


def pattern_text(pattern: Pattern) -> str:
    """A pattern with its parts, `nn.relu(nn.conv2d(*, *))`; a part that it has in two places is
    written out once, and one that lies deep not at all.
    """
    return _text(pattern, set(), _DEPTH)


_DEPTH = 100
"""The parts inside of each other that are written out."""


def _text(pattern: Pattern, seen: set[Pattern], depth: int) -> str:
    if depth == 0:
        return "…"
    depth -= 1
    if isinstance(pattern, AltPattern):
        return f"({_text(pattern.first, seen, depth)} or {_text(pattern.second, seen, depth)})"
    if not isinstance(pattern, CallPattern):
        inner = list(pattern.children)
        return _text(inner[0], seen, depth) if len(inner) == 1 else str(pattern)
    if pattern in seen:
        return f"{pattern}(…)"
    seen.add(pattern)
    if pattern.args is None:
        return str(pattern)
    head = f"({pattern})" if " " in str(pattern) else str(pattern)
    return f"{head}({', '.join(_text(one, seen, depth) for one in pattern.args)})"
