"""Warnings of a compilation, which its program in the cache repeats.

`warnings.catch_warnings` would change what the whole process does with warnings, also those of
other threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[list[str] | None] = ContextVar("noted_warnings", default=None)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warns the user, and notes the text where that is asked for.

    Args:
        stacklevel: 1 for the caller, 2 for its caller, as in `warnings.warn`.
    """
    noted = _noted.get()
    if noted is not None:
        noted.append(text)
    warnings.warn(text, stacklevel=stacklevel + 1)


@contextmanager
def noted_warnings() -> Generator[list[str]]:
    """Notes the warnings that are given inside."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
