"""Passes and patterns that a compilation leaves out, by name.

`compile(disable=…)` says which; see docs/debugging.md.
"""

from __future__ import annotations

from collections.abc import Generator, Set
from contextlib import contextmanager
from contextvars import ContextVar

_names: ContextVar[Set[str]] = ContextVar("disabled", default=frozenset())


@contextmanager
def disabling(names: Set[str]) -> Generator[None]:
    """What is compiled inside goes without the passes and patterns of these names."""
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


def is_disabled(name: str) -> bool:
    """Whether the compilation goes without the pass or pattern of this name."""
    return name in _names.get()
