"""The fake device by itself: memory, queues, counters, events and faults, through ctypes."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fakenpu.control import Control, EventKind, Fault

from byoc_mlir.testing.forked import run_forked

DEVICES = ("fakenpu", "fakenpu2")


class Driver:
    """Functions of a device's library, with the statuses as exceptions."""

    def __init__(self, device: str):
        self.control = Control(device)
        self.device = device

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function; a failure is a `RuntimeError` with the status's text."""
        status = getattr(self.control.library, f"{self.device}_{name}")(*arguments)
        if status:
            raise RuntimeError(self.control.message(status))

    @contextmanager
    def queue(self) -> Generator[ctypes.c_void_p]:
        """Opens a queue."""
        queue = ctypes.c_void_p()
        self.call("open", ctypes.byref(queue))
        try:
            yield queue
        finally:
            getattr(self.control.library, f"{self.device}_close")(queue)

    @contextmanager
    def memory(self, count: int) -> Generator[ctypes.c_void_p]:
        """Allocates memory for some `f32` elements."""
        memory = ctypes.c_void_p()
        self.call("allocate", ctypes.c_int64(4 * count), ctypes.byref(memory))
        try:
            yield memory
        finally:
            getattr(self.control.library, f"{self.device}_free")(memory)

    def copy_in(self, queue: ctypes.c_void_p, memory: ctypes.c_void_p, array: Any) -> None:
        """Enqueues a copy to the device."""
        host = array.ctypes.data_as(ctypes.c_void_p)
        self.call("copy_in", queue, memory, host, ctypes.c_int64(array.nbytes))

    def copy_out(self, queue: ctypes.c_void_p, array: Any, memory: ctypes.c_void_p) -> None:
        """Enqueues a copy to the host."""
        host = array.ctypes.data_as(ctypes.c_void_p)
        self.call("copy_out", queue, host, memory, ctypes.c_int64(array.nbytes))

    def relu(self, queue: ctypes.c_void_p, memory: ctypes.c_void_p, count: int) -> None:
        """Enqueues a kernel that works in place."""
        self.call("relu", queue, memory, memory, ctypes.c_int64(count))


@pytest.fixture(params=DEVICES)
def driver(request: pytest.FixtureRequest) -> Driver:
    """Returns the driver of each device."""
    return Driver(request.param)


def _through(driver: Driver, array: Any) -> Any:
    """Returns `relu(array)`, computed by the device."""
    result = np.zeros_like(array)
    with driver.queue() as queue, driver.memory(array.size) as memory:
        driver.copy_in(queue, memory, array)
        driver.relu(queue, memory, array.size)
        driver.copy_out(queue, result, memory)
        driver.call("wait", queue)
    return result


ARRAY = np.linspace(-1, 1, 100, dtype=np.float32)


def test_copies_and_a_kernel(driver: Driver) -> None:
    before = driver.control.counters()
    np.testing.assert_array_equal(_through(driver, ARRAY), np.maximum(ARRAY, 0))
    found = driver.control.counters().since(before)
    assert (found.copies_in, found.copies_out, found.launches, found.waits) == (1, 1, 1, 1)
    assert (found.bytes_in, found.bytes_out, found.allocations) == (400, 400, 1)
    assert (found.live_bytes, found.live_allocations, found.live_queues) == (0, 0, 0)


def test_devices_are_apart() -> None:
    one, other = (Driver(device) for device in DEVICES)
    before = other.control.counters()
    _through(one, ARRAY)
    assert other.control.counters() == before


@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_result_that_nobody_waited_for_is_not_there(driver: Driver, is_lazy: bool) -> None:
    """Checks a slow queue, and one that does not start before the wait."""
    result = np.zeros_like(ARRAY)
    with (
        driver.control.lazy() if is_lazy else driver.control.delays(copy=50),
        driver.queue() as queue,
        driver.memory(ARRAY.size) as memory,
    ):
        driver.copy_in(queue, memory, ARRAY)
        driver.copy_out(queue, result, memory)
        assert np.isnan(result).all()
        driver.call("wait", queue)
        np.testing.assert_array_equal(result, ARRAY)


def test_new_and_freed_memory_is_no_number(driver: Driver) -> None:
    result = np.zeros_like(ARRAY)
    with driver.queue() as queue, driver.memory(ARRAY.size) as memory:
        driver.copy_out(queue, result, memory)
        driver.call("wait", queue)
    assert np.isnan(result).all()


def test_memory_that_is_freed_too_early(driver: Driver) -> None:
    with driver.control.lazy(), driver.queue() as queue:
        with driver.memory(ARRAY.size) as memory:
            driver.copy_in(queue, memory, ARRAY)
        with pytest.raises(RuntimeError, match="not in allocated device memory"):
            driver.call("wait", queue)


def test_released_memory_lives_until_the_queue_is_done(driver: Driver) -> None:
    result, memory = np.zeros_like(ARRAY), ctypes.c_void_p()
    before = driver.control.counters()
    with driver.control.lazy(), driver.queue() as queue:
        driver.call("allocate", ctypes.c_int64(ARRAY.nbytes), ctypes.byref(memory))
        driver.copy_in(queue, memory, ARRAY)
        driver.copy_out(queue, result, memory)
        driver.call("release", queue, memory)
        driver.call("wait", queue)
    np.testing.assert_array_equal(result, ARRAY)
    assert driver.control.counters().since(before).live_bytes == 0


STRAY = """
import ctypes, sys
from fakenpu.control import Control
library, memory = Control("fakenpu").library, ctypes.c_void_p()
assert library.fakenpu_allocate(ctypes.c_int64(64), ctypes.byref(memory)) == 0
print("allocated", flush=True)
ctypes.memset(memory, 0, 4) if sys.argv[1] == "write" else ctypes.string_at(memory, 4)
print("survived")
"""


@pytest.mark.parametrize("access", ["read", "write"])
def test_a_host_that_touches_device_memory_crashes(access: str) -> None:
    with pytest.raises(AssertionError, match=rf"status -{int(signal.SIGSEGV)}") as caught:
        run_forked(STRAY, access)
    assert "allocated" in str(caught.value)
    assert "survived" not in str(caught.value).partition("\n")[2].replace(STRAY, "")


FAULTS = {
    Fault.OPEN: "a queue could not be created",
    Fault.ALLOCATE: "out of memory",
    Fault.COPY: "a copy failed",
    Fault.LAUNCH: "could not be launched",
    Fault.KERNEL: "a kernel failed",
    Fault.COMPLETION: "did not report that it is done",
    Fault.DEVICE: "has disappeared",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
def test_each_fault_has_words_and_the_next_run_is_right(driver: Driver, fault: Fault) -> None:
    before = driver.control.counters()
    with driver.control.fault(fault), pytest.raises(RuntimeError, match=FAULTS[fault]):
        _through(driver, ARRAY)
    np.testing.assert_array_equal(_through(driver, ARRAY), np.maximum(ARRAY, 0))
    after = driver.control.counters().since(before)
    assert (after.live_bytes, after.live_queues) == (0, 0)


def test_a_lost_device_stays_lost(driver: Driver) -> None:
    with driver.queue() as queue, driver.memory(ARRAY.size) as memory:
        with driver.control.fault(Fault.DEVICE, countdown=2):
            driver.copy_in(queue, memory, ARRAY)
            for _ in range(3):
                with pytest.raises(RuntimeError, match="has disappeared"):
                    driver.call("wait", queue)
        driver.call("wait", queue)


def test_nothing_runs_after_a_failure(driver: Driver) -> None:
    result = np.zeros_like(ARRAY)
    with driver.queue() as queue, driver.memory(ARRAY.size) as memory:
        with driver.control.fault(Fault.COPY):
            driver.copy_in(queue, memory, ARRAY)
        driver.copy_out(queue, result, memory)
        with pytest.raises(RuntimeError, match="a copy failed"):
            driver.call("wait", queue)
        assert np.isnan(result).all()
        driver.call("wait", queue)  # the failure is reported once


def test_events_say_what_overlapped(driver: Driver) -> None:
    driver.control.events()
    with driver.control.delays(kernel=5):
        _through(driver, ARRAY)
    events = driver.control.events()
    kinds = [event.kind for event in events]
    assert kinds == [EventKind.COPY_IN, EventKind.LAUNCH, EventKind.COPY_OUT, EventKind.WAIT]
    copy, kernel, _, wait = events
    assert kernel.end - kernel.begin >= 5_000_000
    assert copy.end <= kernel.begin
    assert wait.end >= kernel.end


def test_queues_of_several_threads(driver: Driver) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        array = ARRAY * np.float32(number)
        try:
            for _ in range(20):
                np.testing.assert_array_equal(_through(driver, array), np.maximum(array, 0))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    before = driver.control.counters()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    after = driver.control.counters().since(before)
    assert (after.copies_in, after.live_bytes, after.live_queues) == (160, 0, 0)


def test_a_forked_process_gets_a_status(driver: Driver) -> None:
    with driver.queue():
        child = os.fork()
        if child == 0:
            queue = ctypes.c_void_p()
            function = getattr(driver.control.library, f"{driver.device}_open")
            os._exit(function(ctypes.byref(queue)))
        _, ended = os.waitpid(child, 0)
    assert "before a fork" in driver.control.message(os.waitstatus_to_exitcode(ended))
