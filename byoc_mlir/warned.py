"""Warnings of a compilation, which its program in the cache repeats.

`warnings.catch_warnings` would affect the warnings of the whole process, including other threads.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[list[str] | None] = ContextVar("noted_warnings", default=None)


def warn(text: str) -> None:
    """Warns the user, and records the text if requested."""
    noted = _noted.get()
    if noted is not None:
        noted.append(text)
    warn_user(text)


def warn_user(text: str) -> None:
    """Warns at the line outside of this package that led to the caller, without recording."""
    warnings.warn(text, stacklevel=_user_level())


def _user_level() -> int:
    """Returns the stack level, from the caller on, of the first code outside of this package."""
    level = 1
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and _is_ours(frame.f_globals["__name__"]):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    """True if a module is of this package, or calls its decorated functions."""
    return module.split(".")[0] in ("byoc_mlir", "contextlib")


@contextmanager
def noted_warnings() -> Generator[list[str]]:
    """Records the warnings in the context."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
