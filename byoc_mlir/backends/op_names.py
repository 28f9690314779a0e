"""Names of ops in rules and patterns that no `relay` op has: what they stand for never runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byoc_mlir.backends.base import Backend
from byoc_mlir.dialects.relay import RELAY, RelayOp
from byoc_mlir.names import meant
from byoc_mlir.patterns import Pattern
from byoc_mlir.patterns.language import CallPattern

RELAY_NAMES = frozenset(
    kind.name.removeprefix("relay.") for kind in RELAY.operations if issubclass(kind, RelayOp)
)
"""The names of all ops that a rule or a pattern can ask for."""


def unknown_ops(backend: Backend) -> Sequence[tuple[str, str]]:
    """Pairs of an op or a composite that a backend claims, and what is wrong with a name in it."""
    rules = [(name, name) for name in backend.op_rules()]
    named = [(row.name, name) for row in backend.patterns() for name in _names(row.pattern)]
    return [
        (subject, f"there is no Relay op '{name}'{meant(name.removeprefix('relay.'), RELAY_NAMES)}")
        for subject, name in dict.fromkeys([*rules, *named])
        if name not in RELAY_NAMES
    ]


def _names(pattern: Pattern) -> Iterator[str]:
    """The names in a pattern; a part that it has in several places is visited once."""
    pending, seen = [pattern], {pattern}
    while pending:
        part = pending.pop()
        if isinstance(part, CallPattern):
            yield from part.names or ()
        new = [child for child in part.children if child not in seen]
        seen.update(new)
        pending += new
