"""Number of spins of a waiting OpenMP thread."""

from __future__ import annotations

import mmap
import platform

import pytest

from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.runtime.system import spins


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only this processor's pause is timed")
def test_a_thread_spins_for_as_long_as_it_should() -> None:
    nanoseconds = 1e9 * spins.SPIN_SECONDS / spins.spins()
    assert 1 < nanoseconds < 200  # pauses have 9 to 140 cycles


@pytest.mark.parametrize(("nanoseconds", "expected"), [(11, 7273), (18, 4444), (54, 1481)])
def test_slow_pauses_are_fewer(
    nanoseconds: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortest = 2000e-9 * nanoseconds
    times = iter([3 * shortest, shortest, 2 * shortest])  # another process had the core in two

    def seconds(pause: object) -> float:
        assert callable(pause)
        return next(times)

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(spins, "_seconds", seconds)
    assert spins.spins() == expected


def test_plans_assume_that_threads_spin_so_long() -> None:
    assert pytest.approx(1e3 * spins.SPIN_SECONDS) == ASSUMED.threads_spin


def test_other_processors_spin_a_fixed_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert spins.spins() == spins.USUAL_SPINS


def test_a_system_without_executable_data_does_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> object:
        raise PermissionError(f"no memory for {args}")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert spins.spins() == spins.USUAL_SPINS
