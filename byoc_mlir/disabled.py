"""Passes and patterns that are disabled in a compilation, by name.

`compile(disable=…)` sets them; see docs/debugging.md.
"""

from __future__ import annotations

from collections.abc import Generator, Set
from contextlib import contextmanager
from contextvars import ContextVar

_names: ContextVar[Set[str]] = ContextVar("disabled", default=frozenset())


@contextmanager
def disabling(names: Set[str]) -> Generator[None]:
    """Disables the passes and patterns of these names in the context."""
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


def is_disabled(name: str) -> bool:
    """True if the pass or pattern of this name is disabled."""
    return name in _names.get()
