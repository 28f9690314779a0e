"""OpenMP threads of a library that another package has loaded: they are throttled under load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from byoc_mlir.runtime.system.libraries import load_library
from byoc_mlir.runtime.system.overload import Watcher
from byoc_mlir.runtime.system.threads import OPENMP
from byoc_mlir.testing.forked import run_forked

_LOADED_FIRST = """
import ctypes, os, threading
os.environ.pop("GOMP_SPINCOUNT", None)
if {first}:
    ctypes.CDLL("libgomp.so.1")
from byoc_mlir.runtime.system.libraries import find_openmp
find_openmp()
find_openmp()
print([one.name for one in threading.enumerate() if one.name.startswith("byoc")])
print(os.environ["GOMP_SPINCOUNT"])
"""


_TEAM = """
import os, time
from pathlib import Path
from byoc_mlir.runtime.system.libraries import load_library
from byoc_mlir.runtime.system.overload import SleepingTeam
from byoc_mlir.runtime.system.threads import OPENMP, RUNS
from byoc_mlir.testing.forked import run_forked

def threads():
    return len(os.listdir("/proc/self/task"))

openmp = load_library(Path(OPENMP))
before = threads()
team = SleepingTeam(openmp)
while threads() < before + os.cpu_count() + 1:
    time.sleep(0.001)
assert RUNS.tolist() == [0, 1], "runs bind their threads"
team.end()
assert RUNS.tolist() == [0, 0], "runs still leave their threads to the scheduler"
while threads() > before:  # they end after the thread that began them
    time.sleep(0.001)
"""
"""Script for a process without other threads, which might end meanwhile."""


def test_a_team_has_more_threads_than_there_are_cores() -> None:
    run_forked(_TEAM, seconds=60)


@pytest.mark.parametrize(
    ("loads", "teams"),
    [
        ([True] * 2, [False] * 2),
        ([True, True, False, True, True], [False] * 5),
        ([True] * 4, [False, False, True, True]),
        ([True] * 3 + [False] * 39 + [True], [False, False, *[True] * 41]),
        ([True] * 3 + [False] * 41, [False, False, *[True] * 40, False, False]),
    ],
)
def test_a_team_sleeps_while_the_machine_is_overloaded(
    loads: Sequence[bool], teams: Sequence[bool]
) -> None:
    given = iter(loads)
    watcher = Watcher(load_library(Path(OPENMP)), lambda: next(given))
    found: list[bool] = []
    for _ in loads:
        watcher.look()
        found.append(watcher.team is not None)
    if watcher.team is not None:
        watcher.team.end()
    assert found == teams


@pytest.mark.parametrize(("first", "watchers"), [(True, ["byoc-load-watcher"]), (False, [])])
def test_threads_of_a_library_that_was_loaded_before_are_watched(
    first: bool, watchers: Sequence[str]
) -> None:
    script = _LOADED_FIRST.format(first=first)
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names, count = found.splitlines()
    assert names == f"{watchers}"
    assert 400 < int(count) < 80_000
