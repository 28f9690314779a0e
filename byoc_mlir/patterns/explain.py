"""Explanations why a pattern does not match."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.language import AltPattern, CallPattern, Pattern
from byoc_mlir.patterns.matching import all_matches
from byoc_mlir.patterns.scope import Scope


@dataclass(frozen=True)
class Miss:
    """Partial match that matched the most sub-patterns."""

    fitted: int
    """Number of parts that fitted; -1 for a pattern that describes no op."""
    reason: str
    """Reason why the next part did not fit."""


def nearest_miss(pattern: Pattern, op: Operation, scope: Scope | None = None) -> Miss | None:
    """Returns the partial match of `pattern` at `op` with the most matched sub-patterns; `None` if
    the whole pattern matches.
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
    """Returns why `pattern` does not match at `op`; `None` if it matches.

    Of several partial matches, the reason is for the one with the most matched sub-patterns.
    """
    miss = nearest_miss(pattern, op, scope)
    return None if miss is None else miss.reason


def pattern_text(pattern: Pattern) -> str:
    """Returns a pattern with its sub-patterns as text, `nn.relu(nn.conv2d(*, *))`.

    A sub-pattern that occurs twice is expanded once; sub-patterns below `_DEPTH` are `…`.
    """
    return _text(pattern, set(), _DEPTH)


_DEPTH = 100
"""Maximum nesting of parts that are expanded."""


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
