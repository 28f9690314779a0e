"""Clock for short runs on systems that report a thread's time in ticks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from byoc_mlir.kernels.costs import ActivationCalibration
from byoc_mlir.lowering.calibration import BENCHMARKS
from byoc_mlir.runtime.system.threads import thread_clock


@pytest.fixture
def in_ticks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Mocks a thread clock with ticks of 10 ms."""
    fine = time.thread_time
    monkeypatch.setattr(time, "thread_time", lambda: fine() // 0.01 * 0.01)
    thread_clock.cache_clear()
    yield
    thread_clock.cache_clear()


def test_it_is_the_clock_on_the_wall(in_ticks: None) -> None:
    assert thread_clock() is time.perf_counter


def test_kernels_take_time(in_ticks: None) -> None:
    benchmark = BENCHMARKS[ActivationCalibration]
    found = benchmark.measure()
    assert all(milliseconds > 0 for milliseconds in found)
    assert benchmark.table(found).numbers().keys() == ActivationCalibration().numbers().keys()
