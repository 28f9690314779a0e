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

import byoc_mlir
from byoc_mlir.compiler.request import Fallback
from byoc_mlir.errors import DeviceError, DeviceMemoryError
from byoc_mlir.runtime.device_instance import DeviceInstance
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import random_inputs

OUT_OF_MEMORY = "out of memory"
WORDS = {
    Fault.OPEN: "a queue could not be created",
    Fault.ALLOCATE: OUT_OF_MEMORY,
    Fault.COPY: "a copy failed",
    Fault.LAUNCH: "could not be launched",
    Fault.KERNEL: "a kernel failed",
    Fault.COMPLETION: "did not report that it is done",
    Fault.DEVICE: "has disappeared",
}
MODEL = host_between_and_direct()


@pytest.mark.values
@pytest.mark.filterwarnings("ignore:no region runs on device")
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
    """True if the run with this fault raises, or the model falls back to other places.

    If the executable exists, its next run is right.
    """
    made: list[Executable] = []

    def run() -> None:
        with control.fault(fault, number):
            made.append(compiled(MODEL, *targets))
            for seed in range(2):
                checked_run(made[0], MODEL, seed)

    error = _error_of(run)
    assert error is None or (control.device in str(error) and WORDS[fault] in str(error))
    fell_back = any(OUT_OF_MEMORY in text for one in made for text in one.report().warnings)
    assert not fell_back or fault is Fault.ALLOCATE
    for executable in made:
        assert control.counters().live_tasks == 0
        checked_run(executable, MODEL, seed=2)
        executable.close()
    return error is not None or fell_back


@pytest.mark.parametrize("fallback", ["warn", "allow"])
def test_a_device_without_memory_is_left_out(fallback: Fallback) -> None:
    control, targets = Control("fakenpu"), ("fakenpu", "fakenpu2")
    with nothing_left():
        with control.fault(Fault.ALLOCATE), pytest.warns(UserWarning, match="no region"):
            executable = byoc_mlir.compile(MODEL, targets=targets, fallback=fallback)
        report = executable.report()
        checked_run(executable, MODEL)
        executable.close()
    assert {"fakenpu2"} <= report.counts().keys() <= {"fakenpu2", "host", "removed", "folded"}
    (warning,) = report.warnings
    assert warning.startswith("no region runs on device 'fakenpu': could not load: device")
    assert OUT_OF_MEMORY in warning
    on_host = report.placed("host")
    assert on_host
    assert all("fakenpu: device 'fakenpu' has too little memory" in row.reason for row in on_host)


def test_a_device_without_memory_is_an_error_where_fallbacks_are_forbidden() -> None:
    model, control = mlp3(), Control("fakenpu")
    with nothing_left(), control.fault(Fault.ALLOCATE), pytest.raises(DeviceMemoryError):
        byoc_mlir.compile(model, targets=("fakenpu",), fallback="forbid")


def test_memory_on_devices_counts() -> None:
    model = mlp3()
    with compiled(model, "fakenpu") as executable:
        program = executable.program
    (device,) = program.devices
    instance = DeviceInstance(program)
    before = instance.held_bytes
    assert before >= device.constant_bytes + device.arena_bytes > device.constant_bytes > 0
    assert instance.close_idle()
    assert instance.held_bytes == before - device.arena_bytes - program.arena_bytes
    instance.run(list(random_inputs(model).values()))
    assert instance.held_bytes == before
    instance.close()


def test_idle_contexts_give_back_their_memory() -> None:
    model, control = mlp3(), Control("fakenpu")
    with nothing_left(), compiled(model, "fakenpu") as idle:
        before = control.counters().live_allocations
        with control.fault(Fault.ALLOCATE), compiled(model, "fakenpu") as executable:
            assert control.counters().live_allocations == before  # one arena went, another came
            checked_run(executable, model)
        checked_run(idle, model)
        assert not any("no region" in text for text in executable.report().warnings)


def _error_of(run: Callable[[], None]) -> DeviceError | None:
    try:
        run()
    except DeviceError as error:
        return error
    return None
