"""Clock for short measurements on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

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
