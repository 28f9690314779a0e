"""Support for running models in a forked child.

A child has one thread, a copy of the thread that forked. The OpenMP threads of that thread's team
are missing, and locks that other threads held stay locked. So before a fork, OpenMP ends the
threads of the forking thread (parent and child start new ones when they need them), and the fork
waits until no thread runs code of LLVM or imports a module of the compiler. In the child, all locks
are released.

If OpenMP cannot end threads (libgomp before GCC 9), the child calls native code on new threads,
which expect no OpenMP threads.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar, cast

from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.system.threads import RUNS, loaded_openmp

llvm_at_work = threading.RLock()
"""Lock that is held while threads are inside of LLVM without llvmlite's lock."""

_PAUSE_HARD = 2
"""Value of `omp_pause_hard`: the threads end."""

_PACKAGES = ("byoc_mlir", "xdsl", "llvmlite", "onnx", "numpy")
"""Packages whose modules a compilation imports when it needs them."""

_IMPORT_SECONDS = 5.0
"""Longest wait for an import, which may itself wait for the thread that forks."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Fork(threading.local):
    """Fork in progress, with a flag that is set if this thread's OpenMP threads were ended."""

    llvm: AbstractContextManager[Any] = nullcontext()
    ends_threads = True


_fork = _Fork()
_lost_threads = False
"""True if this process is a child whose first thread expects OpenMP threads that are missing."""


def on_live_threads(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Returns `function`, or a wrapper that calls it on a new thread.

    The wrapper is needed if the calling thread has lost its OpenMP threads in a fork.
    """
    if not _lost_threads:
        return function

    from concurrent.futures import ThreadPoolExecutor  # 7 ms, and few processes need it

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return call


def _before() -> None:
    _fork.ends_threads = _end_openmp_threads()
    llvm_at_work.acquire()
    _fork.llvm = _llvm_at_rest()
    _fork.llvm.__enter__()
    _wait_for_imports()


def _after_in_child() -> None:
    global _lost_threads
    _leave_llvm()
    ForkSafeLock.open_all()
    RUNS[:] = 0  # other threads' runs are not under way here
    _lost_threads = _lost_threads or not _fork.ends_threads


def _leave_llvm() -> None:
    _fork.llvm.__exit__(None, None, None)
    llvm_at_work.release()


def _end_openmp_threads() -> bool:
    """Ends the OpenMP threads of this thread; returns True if there are none now."""
    library = loaded_openmp()
    if library is None:
        return True
    pause = getattr(library, "omp_pause_resource_all", None)
    return pause is not None and pause(_PAUSE_HARD) == 0


def _wait_for_imports() -> None:
    """Waits until no thread imports a module of `_PACKAGES`: in the child, an import of that module
    would wait for the missing thread."""
    end = time.monotonic() + _IMPORT_SECONDS
    while _is_importing() and time.monotonic() < end:
        time.sleep(0.001)


def _is_importing() -> bool:
    return any(
        name.partition(".")[0] in _PACKAGES
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in sys.modules.copy().items()
    )


def _llvm_at_rest() -> AbstractContextManager[Any]:
    """Returns a context that holds llvmlite's lock, if llvmlite is loaded."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return nullcontext() if ffi is None else cast(Any, ffi).lib._lock


os.register_at_fork(before=_before, after_in_parent=_leave_llvm, after_in_child=_after_in_child)
