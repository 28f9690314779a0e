"""Number of times that a waiting OpenMP thread spins before it sleeps."""

from __future__ import annotations

import ctypes
import mmap
import platform
import time
from collections.abc import Callable

SPIN_SECONDS = 80e-6
"""Time that a waiting thread spins: longer than a resting core takes to wake, some 40 µs in a
virtual machine, and then to do its share of a short loop. If threads sleep sooner, each one waits
until the other has been woken, in every loop. With ten times as long, runs are very slow under
load: a spinning thread may occupy the core of the preempted thread for which it waits."""

USUAL_SPINS = 2000
"""Number of spins where a pause cannot be measured."""

_CODE = bytes.fromhex("f390 ffcf 75fa c3")
"""Machine code of x86-64 of `void (i32 count)`: `pause; dec edi; jnz; ret`."""

_PAUSES, _TRIES = 2000, 3


def spins() -> int:
    """Returns the number of spins, each with one pause, of 11 ns on some processors and of 50 on
    others.
    """
    if platform.machine() != "x86_64":
        return USUAL_SPINS
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection)
    except OSError:
        return USUAL_SPINS  # a system without executable data
    memory.write(_CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    pause = ctypes.CFUNCTYPE(None, ctypes.c_int32)(address)
    return round(SPIN_SECONDS * _PAUSES / min(_seconds(pause) for _ in range(_TRIES)))


def _seconds(pause: Callable[[int], object]) -> float:
    start = time.perf_counter()
    pause(_PAUSES)
    return time.perf_counter() - start
