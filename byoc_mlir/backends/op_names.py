"""Check for names in rules and patterns that no `relay` op has, so that they never match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byoc_mlir.backends.base import Backend
from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.dialect import RELAY
from byoc_mlir.names import meant
from byoc_mlir.patterns import Pattern
from byoc_mlir.patterns.language import CallPattern

RELAY_NAMES = frozenset(
    kind.name.removeprefix("relay.") for kind in RELAY.operations if issubclass(kind, RelayOp)
)
"""Names of all ops that a rule or a pattern can match."""


def unknown_ops(backend: Backend) -> Sequence[tuple[str, str]]:
    """Returns pairs of an op or composite that a backend claims, and the problem with a name in
    it.
    """
    rules = [(name, name) for name in backend.op_rules()]
    named = [(row.name, name) for row in backend.patterns() for name in _names(row.pattern)]
    return [
        (subject, f"there is no Relay op '{name}'{meant(name.removeprefix('relay.'), RELAY_NAMES)}")
        for subject, name in dict.fromkeys([*rules, *named])
        if name not in RELAY_NAMES
    ]


def _names(pattern: Pattern) -> Iterator[str]:
    """Yields the names in a pattern, and visits each of its sub-patterns once."""
    pending, seen = [pattern], {pattern}
    while pending:
        part = pending.pop()
        if isinstance(part, CallPattern):
            yield from part.names or ()
        new = [child for child in part.children if child not in seen]
        seen.update(new)
        pending += new
