"""Threads: the requested number, the cores that the process may use, and waiting of idle
threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from byoc_mlir.runtime.system import threads

_COUNT = """
import os, sys
import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs
model = NETWORKS["squeezenet"](image=64)
inputs = random_inputs(model, seed=0)
before = len(os.listdir("/proc/self/task"))
with byoc_mlir.compile(model, targets=("dnnl",), threads=int(sys.argv[1])) as executable:
    executable.run(inputs)
    executable.run(inputs)
print(len(os.listdir("/proc/self/task")) - before)
"""


def _run(script: str, *arguments: str, **environment: str) -> str:
    """Returns the output of a script in a process whose environment has no OpenMP variables."""
    inherited = {name: value for name, value in os.environ.items() if "OMP" not in name}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_threads_as_asked_for(count: int) -> None:
    """Checks the count: OpenMP's threads come on top of the calling thread, in compiling as in
    running.
    """
    assert _run(_COUNT, str(count)) == str(count - 1)


_SPINS = """
import ctypes, os
from byoc_mlir.onednn.library import load_library
load_library()
process = ctypes.CDLL(None)
process.getenv.restype = ctypes.c_char_p
print((process.getenv(b"GOMP_SPINCOUNT") or b"none").decode())
"""


def test_idle_threads_sleep_soon() -> None:
    assert 400 < int(_run(_SPINS)) < 80_000


@pytest.mark.parametrize(
    ("setting", "seen"),
    [({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "none")],
)
def test_the_users_own_settings_win(setting: dict[str, str], seen: str) -> None:
    assert _run(_SPINS, **setting) == seen


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), ("900000 100000", 8)],
)
def test_cores_of_the_cgroup(
    quota: str, cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.setattr(threads, "_CGROUP_V2", file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert threads.available_threads() == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("250000", 3)])
def test_cores_of_an_older_cgroup(
    quota: str, cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    monkeypatch.setattr(threads, "_CGROUP_V2", tmp_path / "absent")
    monkeypatch.setattr(threads, "_CGROUP_V1", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert threads.available_threads() == cores


def test_cores_of_the_affinity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "_CGROUP_V2", tmp_path / "absent")
    monkeypatch.setattr(threads, "_CGROUP_V1", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 6})
    assert threads.available_threads() == 3
