"""Signals that are blocked while native code must not be interrupted."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from byoc_mlir.runtime.system.libraries import load_library
from byoc_mlir.runtime.system.threads import OPENMP

HELD = frozenset(signal.valid_signals()) - {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGTRAP,
}
"""Signals that can be blocked: all except those that the interrupted instruction itself causes."""

_ALL_THREADS, _NO_FLAGS = 0, 0

_SET_BYTES = 128
"""Upper bound of the bytes of a `sigset_t`."""


@contextmanager
def signals_held() -> Generator[None]:
    """Blocks signals in this thread, and in the OpenMP threads of its team, in the `with` body.

    Pending signals reach this thread after the `with` body, or another thread before that. The
    OpenMP threads keep signals blocked, since no signal handler needs them.

    Raises:
        ExecutionError: there is no OpenMP runtime.
    """
    before = ctypes.create_string_buffer(_SET_BYTES)
    _change_mask(signal.SIG_BLOCK, _held(), before)
    try:
        openmp = load_library(Path(OPENMP))
        if openmp.omp_get_max_threads() > 1:
            openmp.GOMP_parallel(_hold_on_thread(), None, _ALL_THREADS, _NO_FLAGS)
        yield
    finally:
        _change_mask(signal.SIG_SETMASK, before, None)


@cache
def _hold_on_thread() -> Any:
    """Returns a C function that blocks signals on the thread that calls it."""

    def hold(_: int | None) -> None:
        _change_mask(signal.SIG_BLOCK, _held(), None)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(hold)


_Set: TypeAlias = "ctypes.Array[ctypes.c_char]"


def _change_mask(how: int, signals: _Set, before: _Set | None) -> None:
    """Calls `pthread_sigmask` through ctypes: Python's function creates objects for all signals,
    0.2 ms a run.
    """
    _c_library().pthread_sigmask(ctypes.c_int(how), signals, before)


@cache
def _held() -> _Set:
    """Returns `HELD` as a `sigset_t`."""
    signals = ctypes.create_string_buffer(_SET_BYTES)
    _c_library().sigemptyset(signals)
    for number in HELD:
        _c_library().sigaddset(signals, ctypes.c_int(number))
    return signals


@cache
def _c_library() -> ctypes.PyDLL:
    return ctypes.PyDLL(None)
