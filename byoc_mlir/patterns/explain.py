"""Why a pattern does not match."""

from __future__ import annotations

from xdsl.ir import Operation

from byoc_mlir.patterns.language import Pattern
from byoc_mlir.patterns.matcher import all_matches
from byoc_mlir.patterns.scope import Scope


def explain_match(pattern: Pattern, op: Operation, scope: Scope | None = None) -> str | None:
    """The first edge where `pattern` does not fit the graph above `op`; `None` if it matches.

    Of several ways to match, the one that got furthest is explained.
    """
    furthest, explanation = -1, f"the pattern {pattern} describes no op"

    def note(fitted: int, reason: str) -> None:
        nonlocal furthest, explanation
        if fitted > furthest:
            furthest, explanation = fitted, reason

    if next(all_matches(pattern, op, scope, note), None) is not None:
        return None
    return explanation
