"""Warnings of a compilation, which its program in the cache repeats.

`warnings.catch_warnings` would affect the warnings of the whole process, including other threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[list[str] | None] = ContextVar("noted_warnings", default=None)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warns the user, and records the text if requested.

    Args:
        stacklevel: 1 for the caller, 2 for its caller, as in `warnings.warn`.
    """
    noted = _noted.get()
    if noted is not None:
        noted.append(text)
    warnings.warn(text, stacklevel=stacklevel + 1)


@contextmanager
def noted_warnings() -> Generator[list[str]]:
    """Records the warnings in the context."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
