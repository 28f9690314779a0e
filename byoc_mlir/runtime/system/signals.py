"""Signals that wait while native code must not be interrupted."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from byoc_mlir.runtime.system.forks import OPENMP
from byoc_mlir.runtime.system.libraries import load_library

HELD = frozenset(signal.valid_signals()) - {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGTRAP,
}
"""All but those that the interrupted instruction itself causes, which cannot wait."""

_ALL_THREADS, _NO_FLAGS = 0, 0


@contextmanager
def signals_held() -> Generator[None]:
    """No signal interrupts this thread inside, nor OpenMP's threads that work for it.

    They reach this thread at the end, or another one before. OpenMP's threads get none from here
    on: nobody counts on them for that.

    Raises:
        ExecutionError: there is no OpenMP runtime.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        openmp = load_library(Path(OPENMP))
        if openmp.omp_get_max_threads() > 1:
            openmp.GOMP_parallel(_hold_on_thread(), None, _ALL_THREADS, _NO_FLAGS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def _hold_on_thread() -> Any:
    """A function of C that holds signals on the thread that calls it."""

    def hold(_: int | None) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(hold)
