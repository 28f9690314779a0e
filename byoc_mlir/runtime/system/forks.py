"""What lets a forked child run models.

A child has one thread, a copy of the one that forked. The OpenMP threads with which that one ran
loops are missing, and locks that other threads held stay locked. So OpenMP lets the threads of the
forking thread end before (both processes start new ones when they need them), nobody is inside of
LLVM meanwhile, and the child gets open locks.

Where OpenMP cannot let threads end (libgomp before GCC 9), the child calls native code on new
threads, which have no OpenMP threads that could be missing.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakSet

OPENMP = "libgomp.so.1"
"""The OpenMP runtime that compiled code uses."""

llvm_at_work = threading.RLock()
"""Held while threads are inside of LLVM without the lock that llvmlite takes for each call."""

_PAUSE_HARD = 2
"""`omp_pause_hard`: the threads end."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ForkSafeLock:
    """A lock that is open in a forked child, and that a thread may take twice.

    What it guards must be usable there, wherever the thread was that held it. While it is held, the
    garbage collector may find something whose end takes it again.
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
        """Opens all of them, in a process that has one thread."""
        for lock in cls._all:
            lock._lock = threading.RLock()


class _Fork(threading.local):
    """A fork of this thread, and whether it left it without OpenMP threads that it counts on."""

    llvm: AbstractContextManager[Any] = nullcontext()
    ends_threads = True


_fork = _Fork()
_lost_threads = False
"""Whether this process is a child whose first thread counts on OpenMP threads that are missing."""


def on_live_threads(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """`function` itself; where the first thread has lost its OpenMP threads, one that calls it on
    a new thread."""
    if not _lost_threads:
        return function

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return call


def _before() -> None:
    _fork.ends_threads = _end_openmp_threads()
    llvm_at_work.acquire()
    _fork.llvm = _llvm_at_rest()
    _fork.llvm.__enter__()


def _after_in_parent() -> None:
    _leave_llvm()


def _after_in_child() -> None:
    global _lost_threads
    _leave_llvm()
    ForkSafeLock.open_all()
    _lost_threads = _lost_threads or not _fork.ends_threads


def _leave_llvm() -> None:
    _fork.llvm.__exit__(None, None, None)
    llvm_at_work.release()


def _end_openmp_threads() -> bool:
    """Ends the OpenMP threads that work for this thread; whether there are none now."""
    try:
        library = ctypes.CDLL(OPENMP, mode=os.RTLD_NOLOAD)
    except OSError:
        return True  # it is not loaded
    pause = getattr(library, "omp_pause_resource_all", None)
    return pause is not None and pause(_PAUSE_HARD) == 0


def _llvm_at_rest() -> AbstractContextManager[Any]:
    """Holds the lock that llvmlite takes for each call, if it is loaded."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return nullcontext() if ffi is None else cast(Any, ffi).lib._lock


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
