"""Matching of patterns at an op: the first match, or all matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import Operation

from byoc_mlir.patterns.composite import Match
from byoc_mlir.patterns.language import Pattern
from byoc_mlir.patterns.matcher import Matcher
from byoc_mlir.patterns.scope import Scope
from byoc_mlir.patterns.subjects import Subject


def match_pattern(pattern: Pattern, op: Operation, scope: Scope | None = None) -> Match | None:
    """Returns the first match of `pattern` with root `op`, or `None`."""
    return next(all_matches(pattern, op, scope), None)


def all_matches(
    pattern: Pattern,
    op: Operation,
    scope: Scope | None = None,
    on_refusal: Callable[[int, str], None] | None = None,
) -> Iterator[Match]:
    """Yields every match with root `op`, in order of preference.

    Matches with the same ops and the same captured values are yielded once.

    Args:
        pattern: the pattern.
        op: the op that produces the value, or all the values, that the pattern describes.
        scope: the ops that may take part; all ops of the block by default.
        on_refusal: called with the number of sub-patterns that fit, and why the next one does not
            fit.

    Raises:
        BackendError: the pattern can match in too many ways to try.
    """
    matcher = Matcher(scope or Scope(op.parent), on_refusal)
    seen = set[tuple[object, ...]]()
    for subject in _root_subjects(op):
        for _ in matcher.match(pattern, subject):
            match = matcher.complete(op, subject)
            if match is None:
                continue
            key = (match.ops, match.inputs, *sorted(_named(match)))
            if key not in seen:
                seen.add(key)
                yield match


def _named(match: Match) -> Iterator[tuple[str, int]]:
    return ((key, id(value)) for key, value in match.captures.items() if isinstance(key, str))


def _root_subjects(op: Operation) -> Sequence[Subject]:
    if len(op.results) == 1:
        return op.results
    return (op, *op.results)
