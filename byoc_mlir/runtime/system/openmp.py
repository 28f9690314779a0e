"""OpenMP runtime that compiled code uses, and how its threads wait."""

from __future__ import annotations

import ctypes
import os

from byoc_mlir.runtime.system.spinning import watch_spinning

OPENMP = "libgomp.so.1"
"""OpenMP runtime that compiled code uses."""

OPENMP_SPINS = 2000
"""Number of spins of a waiting OpenMP thread: about as long as the serial code between two parallel
loops. With ten times as many, runs are very slow under load: a spinning thread may occupy the core
of the preempted thread for which it waits."""


def loaded_openmp() -> ctypes.CDLL | None:
    """Returns the OpenMP runtime if the process has loaded it."""
    try:
        return ctypes.CDLL(OPENMP, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def prepare_openmp_environment() -> None:
    """Sets environment variables that OpenMP reads when its library loads; variables that the user
    has set take precedence.

    A thread without work spins for a moment (long enough for the next loop of the same run) and
    then sleeps, so that other processes on the same cores do not stall every run. If another
    package has loaded the library already, its threads are watched instead.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}.isdisjoint(os.environ):
        return
    os.environ["GOMP_SPINCOUNT"] = str(OPENMP_SPINS)
    openmp = loaded_openmp()
    if openmp is not None:
        watch_spinning(openmp)
