"""The clock that short runs of one thread are measured by."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

_COARSE_SECONDS = 1e-3
"""Steps in which runs of kernels disappear. Sandboxes count in ticks of 10 ms."""

_STEPS = 3
"""One may be long by chance."""


@cache
def thread_clock() -> Callable[[], float]:
    """`time.thread_time`, so that waiting for a core does not count; where it moves in steps that
    are longer than what is measured, the clock on the wall.
    """
    shortest = min(_step() for _ in range(_STEPS))
    return time.thread_time if shortest < _COARSE_SECONDS else time.perf_counter


def _step() -> float:
    start = time.thread_time()
    while (now := time.thread_time()) == start:
        pass
    return now - start
