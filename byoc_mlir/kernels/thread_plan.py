"""Planner that decides which steps of a sequence run on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from byoc_mlir.kernels.costs import ASSUMED


@dataclass(frozen=True)
class _PartialPlan:
    """Fastest plan of the first steps, if threads share the last of these."""

    milliseconds: float
    before: int | None
    """Previous shared step; `None` if there is none."""


def shared_steps(milliseconds: Sequence[float], threads: int) -> list[bool]:
    """Decides for each step if threads share it, for the least total time.

    The time of a shared step is its time on one thread divided by the number of threads, plus the
    time to start them. Threads sleep before the first step, and when they are idle for longer than
    they spin; then the step also waits until they wake. A step that is faster on one thread may be
    shared to keep the other threads awake.

    Args:
        milliseconds: time of each step on one thread.
        threads: number of threads that share a step.
    """
    begins = [0.0, *accumulate(milliseconds)]  # time before each step, all on one thread
    ways: list[_PartialPlan] = []
    sleeping = _PartialPlan(0.0, None)  # best plan so far, less the steps since
    for step, alone in enumerate(milliseconds):
        found = _PartialPlan(
            sleeping.milliseconds + begins[step] + ASSUMED.thread_wake, sleeping.before
        )
        for before in reversed(range(step)):
            gap = begins[step] - begins[before + 1]
            if gap > ASSUMED.threads_spin:
                break
            found = min(found, _PartialPlan(ways[before].milliseconds + gap, before), key=_time)
        shared = alone / threads + ASSUMED.thread_start
        ways.append(_PartialPlan(found.milliseconds + shared, found.before))
        since = _PartialPlan(ways[step].milliseconds - begins[step + 1], step)
        sleeping = min(sleeping, since, key=_time)
    return _marked(ways, sleeping.before)


def _time(way: _PartialPlan) -> float:
    return way.milliseconds


def _marked(ways: Sequence[_PartialPlan], last: int | None) -> list[bool]:
    """Marks the shared steps of the plan whose last shared step is `last`."""
    found = [False] * len(ways)
    while last is not None:
        found[last] = True
        last = ways[last].before
    return found
