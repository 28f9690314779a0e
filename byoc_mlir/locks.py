"""Locks that are open in a forked child, and cached properties without one.

A fork copies one thread of a process. What another thread holds at that moment is held in the child
for ever.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar
from weakref import WeakSet

_T = TypeVar("_T")


class ForkSafeLock:
    """Reentrant lock that is released in a forked child.

    The guarded data must be consistent at any time, since a fork may happen while another thread
    holds the lock. The lock is reentrant because the garbage collector may run a finaliser that
    takes it on a thread that holds it already.
    """

    _all: WeakSet[ForkSafeLock] = WeakSet()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @classmethod
    def open_all(cls) -> None:
        """Releases all locks; the process must have only one thread."""
        for lock in cls._all:
            lock._lock = threading.RLock()


class cached_property(functools.cached_property[_T]):  # noqa: N801, the name is Python's
    """Cached property that two threads may compute at the same time.

    Python 3.11 computes it under one lock for all objects of a class; later versions have none.
    """

    def __init__(self, function: Callable[[Any], _T]):
        super().__init__(function)
        self.lock = nullcontext()
