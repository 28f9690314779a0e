"""How long something takes that is run a few times, no more often than it takes to tell."""

from __future__ import annotations

import math
from collections.abc import Callable

_ENOUGH_SECONDS, _MOST_RUNS = 0.004, 5

_DOUBT = 0.5
"""The share of one run that has to be lost before something else counts as faster."""

_WORTH_ENDING = _ENOUGH_SECONDS / _MOST_RUNS
"""Shorter ones run on: little is saved, and one interruption would decide."""


def shortest_run(execute: Callable[[], None], clock: Callable[[], float], rival: float) -> float:
    """The seconds of the shortest run, after one that warms up.

    Args:
        rival: the seconds of what does the same: what is slower by half a run, all runs together,
            ends early. So little of the time goes to what nobody will choose.
    """
    execute()
    best, spent = math.inf, 0.0
    for runs in range(1, _MOST_RUNS + 1):
        start = clock()
        execute()
        took = clock() - start
        best, spent = min(best, took), spent + took
        is_behind = spent >= _WORTH_ENDING and best * runs > rival * (runs + _DOUBT)
        if spent >= _ENOUGH_SECONDS or is_behind:
            break
    return best
