"""Threads: how many a process may use, the library of the parallel ones, and a clock of one."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from byoc_mlir.errors import ByocError
from byoc_mlir.limits import Limits

OPENMP = "libgomp.so.1"
"""OpenMP runtime that compiled code uses."""

RUNS = np.zeros(2, np.int64)
"""Variable `abi.RUNS_SYMBOL` of this process."""

_CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_V1 = Path("/sys/fs/cgroup/cpu")


def available_threads() -> int:
    """Returns the number of cores that this process may use: its affinity, capped by the cgroup's
    quota.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _cgroup_quota()
    cores = affinity or 1
    return max(1, min(cores, quota) if quota is not None else cores)


def starts(thread: threading.Thread) -> bool:
    """Starts a thread; returns True if it has started.

    It does not start if there are too many threads, or if the interpreter is shutting down.
    """
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def run_beside(one: Callable[[], object], other: Callable[[], object]) -> None:
    """Runs `one` on another thread while `other` runs here, and waits for both.

    Runs the two sequentially if no thread can be started. `one` must not raise.
    """
    thread = threading.Thread(target=one)
    if not starts(thread):
        one()
        other()
        return
    try:
        other()
    finally:
        thread.join()


def loaded_openmp() -> ctypes.CDLL | None:
    """Returns the OpenMP runtime if the process has loaded it."""
    try:
        return ctypes.CDLL(OPENMP, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def check_threads(threads: object, limits: Limits) -> None:
    """Checks a number of threads.

    Raises:
        ByocError: the number is no integer of at least 1; `LimitExceededError` if it is too large.
    """
    if threads is None:
        return
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ByocError(f"threads is {threads!r}, accepted are whole numbers, at least 1, or None")
    limits.check("threads", threads, "threads of a run")


def _cgroup_quota() -> int | None:
    """Returns the cores that the cgroup's CPU quota allows, rounded up, or None without a quota."""
    try:
        if _CGROUP_V2.is_file():
            quota, period = _CGROUP_V2.read_text().split()
        else:
            quota = (_CGROUP_V1 / "cpu.cfs_quota_us").read_text().strip()
            period = (_CGROUP_V1 / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return None  # no cgroup file system here
    if quota == "max" or int(quota) <= 0:
        return None
    return -(-int(quota) // int(period))


_COARSE_SECONDS = 1e-3
"""Resolution in seconds that is too coarse for runs of kernels. Sandboxes count in ticks of 10
ms."""

_STEPS = 3
"""Number of measured clock steps: one may be long by chance."""


@cache
def thread_clock() -> Callable[[], float]:
    """Returns `time.thread_time`, which does not count time without a core.

    Returns the wall clock if the resolution of `thread_time` is too coarse.
    """
    shortest = min(_step() for _ in range(_STEPS))
    return time.thread_time if shortest < _COARSE_SECONDS else time.perf_counter


def _step() -> float:
    start = time.thread_time()
    while (now := time.thread_time()) == start:
        pass
    return now - start
