"""Threads of OpenMP while the machine is overloaded: they sleep, if another package has loaded
OpenMP already, so that variables of the environment cannot say so.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from byoc_mlir.runtime.system.threads import RUNS, starts

_SECONDS = 0.05
"""Interval between two looks at the machine's load."""

_OVERLOADED, _CALM = 3, 40
"""Number of consecutive looks that begin and end an overload: 0.15 s and 2 s."""

_LOAD = Path("/proc/loadavg")
_NO_FLAGS = 0


class SleepingTeam:
    """OpenMP threads that sleep, more than the machine has cores; the caller keeps one of them.

    Meanwhile, teams of runs are left to the scheduler.
    """

    def __init__(self, openmp: ctypes.CDLL):
        RUNS[1] = 1
        self._openmp = openmp
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True, name="byoc-sleeping-team")
        starts(self._thread)

    def end(self) -> None:
        """Ends the threads."""
        RUNS[1] = 0
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _hold(self) -> None:
        nothing = ctypes.cast(self._openmp.omp_get_level, ctypes.c_void_p)
        self._openmp.GOMP_parallel(nothing, None, (os.cpu_count() or 1) + 1, _NO_FLAGS)
        self._is_over.wait()


class Watcher:
    """Watcher of the machine's load, which has a sleeping team during an overload.

    Args:
        openmp: the loaded library.
        is_overloaded: function that returns True if more threads can run than there are cores.
    """

    def __init__(self, openmp: ctypes.CDLL, is_overloaded: Callable[[], bool]):
        self._openmp = openmp
        self._is_overloaded = is_overloaded
        self._others = 0
        """Number of consecutive looks that speak against the present state."""
        self.team: SleepingTeam | None = None

    def look(self) -> None:
        """Looks at the load once; begins or ends the team after enough looks."""
        if self._is_overloaded() == (self.team is not None):
            self._others = 0
            return
        self._others += 1
        if self.team is None and self._others == _OVERLOADED:
            self.team = SleepingTeam(self._openmp)
            self._others = 0
        elif self.team is not None and self._others == _CALM:
            self.team.end()
            self.team = None
            self._others = 0

    def watch(self) -> None:
        """Looks at the load until the process ends."""
        while True:
            time.sleep(_SECONDS)
            self.look()


def is_overloaded() -> bool:
    """True if more threads can run than the machine has cores, not counting the caller."""
    runnable, _, _ = _LOAD.read_text().split()[3].partition("/")
    return int(runnable) - 1 > (os.cpu_count() or 1)


def watch_spinning(openmp: ctypes.CDLL) -> None:
    """Starts a watcher, unless the system does not tell its load."""
    try:
        is_overloaded()
    except (OSError, ValueError, IndexError):
        return  # no Linux, or a sandbox
    watcher = Watcher(openmp, is_overloaded)
    starts(threading.Thread(target=watcher.watch, daemon=True, name="byoc-load-watcher"))
