"""Which of some steps in a row are shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from byoc_mlir.kernels.costs import ASSUMED


@dataclass(frozen=True)
class _Way:
    """The fastest way to have done some steps, the last of which is shared."""

    milliseconds: float
    before: int | None
    """The shared step before that one; `None` if there is none."""


def shared_steps(milliseconds: Sequence[float], threads: int) -> list[bool]:
    """Which steps are shared, so that all of them together take least.

    A shared step takes its part of the time, and its start. Threads that had nothing to do for
    longer than they spin sleep, and are woken first; so they are before the first step. A step that
    one thread would do sooner alone may be shared to keep the others awake.

    Args:
        milliseconds: of each step on one thread.
        threads: those that a step may be shared by.
    """
    begins = [0.0, *accumulate(milliseconds)]  # where all before are done by one thread
    ways: list[_Way] = []
    sleeping = _Way(0.0, None)  # the best before, without what is done alone since
    for step, alone in enumerate(milliseconds):
        found = _Way(sleeping.milliseconds + begins[step] + ASSUMED.thread_wake, sleeping.before)
        for before in reversed(range(step)):
            gap = begins[step] - begins[before + 1]
            if gap > ASSUMED.threads_spin:
                break
            found = min(found, _Way(ways[before].milliseconds + gap, before), key=_time)
        shared = alone / threads + ASSUMED.thread_start
        ways.append(_Way(found.milliseconds + shared, found.before))
        since = _Way(ways[step].milliseconds - begins[step + 1], step)
        sleeping = min(sleeping, since, key=_time)
    return _marked(ways, sleeping.before)


def _time(way: _Way) -> float:
    return way.milliseconds


def _marked(ways: Sequence[_Way], last: int | None) -> list[bool]:
    """The shared steps of a way that ends in one of them."""
    found = [False] * len(ways)
    while last is not None:
        found[last] = True
        last = ways[last].before
    return found
