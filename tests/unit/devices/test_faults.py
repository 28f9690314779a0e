"""Faults of a device: each is a typed error with the device's words, and nothing is lost by it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from device_models import (
    FIRST,
    checked_run,
    compiled,
    host_between_and_direct,
    nothing_left,
)
from fakenpu.control import Control, Fault

from byoc_mlir.errors import DeviceError
from byoc_mlir.runtime.executable import Executable

WORDS = {
    Fault.OPEN: "a queue could not be created",
    Fault.ALLOCATE: "out of memory",
    Fault.COPY: "a copy failed",
    Fault.LAUNCH: "could not be launched",
    Fault.KERNEL: "a kernel failed",
    Fault.COMPLETION: "did not report that it is done",
    Fault.DEVICE: "has disappeared",
}
MODEL = host_between_and_direct()


@pytest.mark.parametrize("fault", WORDS, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("device", ["fakenpu", "fakenpu2"])
def test_every_event_may_fail(device: str, fault: Fault) -> None:
    """Checks a fault at the first, second, … event of loading and two runs."""
    targets, control = FIRST if device == "fakenpu" else (device,), Control(device)
    failures = 0
    for number in itertools.count(1):
        with nothing_left():
            if not _fails(targets, control, fault, number):
                break
        failures += 1
    assert failures >= 1


def _fails(targets: tuple[str, ...], control: Control, fault: Fault, number: int) -> bool:
    """True if the run with this fault raises; if the executable exists, its next run is right."""
    made: list[Executable] = []

    def run() -> None:
        with control.fault(fault, number):
            made.append(compiled(MODEL, *targets))
            for seed in range(2):
                checked_run(made[0], MODEL, seed)

    error = _error_of(run)
    assert error is None or (control.device in str(error) and WORDS[fault] in str(error))
    for executable in made:
        assert control.counters().live_tasks == 0
        checked_run(executable, MODEL, seed=2)
        executable.close()
    return error is not None


def _error_of(run: Callable[[], None]) -> DeviceError | None:
    try:
        run()
    except DeviceError as error:
        return error
    return None
