"""Control of the fake device by tests: counters, events, faults and delays."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from fakenpu.library import library

_EVENTS = 1 << 16


class Fault(IntEnum):
    """Event that can be made to fail."""

    OPEN = 0
    """A queue is opened."""
    ALLOCATE = 1
    COPY = 2
    """A copy runs; the wait after it reports the failure."""
    LAUNCH = 3
    """A kernel is enqueued."""
    KERNEL = 4
    """A kernel runs; the wait after it reports the failure."""
    COMPLETION = 5
    """A copy is done, but the device does not say so."""
    DEVICE = 6
    """Any call: the device disappears, and all calls fail until it is healed."""


class EventKind(IntEnum):
    """Kind of thing that a queue, or a waiting host, has done."""

    COPY_IN = 0
    COPY_OUT = 1
    LAUNCH = 2
    RELEASE = 3
    WAIT = 4


@dataclass(frozen=True)
class Counters:
    """Counts of a device since its library was loaded; those named `live` are of now."""

    copies_in: int
    bytes_in: int
    copies_out: int
    bytes_out: int
    waits: int
    launches: int
    allocations: int
    live_bytes: int
    live_allocations: int
    live_queues: int
    live_tasks: int
    """Tasks that are enqueued and not done."""

    def since(self, before: Counters) -> Counters:
        """Returns the difference of two readings."""
        return Counters(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Event:
    """Thing that a queue has done, or a wait of the host; nanoseconds of the monotonic clock."""

    kind: EventKind
    queue: int
    enqueued: int
    begin: int
    end: int


class Control:
    """Control of one device, `fakenpu` or `fakenpu2`."""

    def __init__(self, device: str):
        self.device = device
        self.library = ctypes.CDLL(str(library(device)))
        self._function("message").restype = ctypes.c_char_p
        self._function("identity").restype = ctypes.c_char_p
        self._function("events").restype = ctypes.c_int64

    def counters(self) -> Counters:
        """Returns a reading of the counters."""
        values = (ctypes.c_int64 * len(fields(Counters)))()
        self._function("counters")(values)
        return Counters(*values)

    def events(self) -> Sequence[Event]:
        """Returns the events since the last call, in the order of their ends."""
        values = (ctypes.c_int64 * 5 * _EVENTS)()
        count = self._function("events")(values, ctypes.c_int64(_EVENTS))
        return [Event(EventKind(row[0]), *row[1:]) for row in values[:count]]

    def message(self, status: int) -> str:
        """Returns the text of a status."""
        return self._function("message")(status).decode()

    @contextmanager
    def fault(self, fault: Fault, countdown: int = 1) -> Generator[None]:
        """Sets which event fails in the `with` body, 1 being the next, and heals the device."""
        self._function("inject")(fault, ctypes.c_int64(countdown))
        try:
            yield
        finally:
            self._function("inject")(fault, ctypes.c_int64(0))

    def identity(self) -> str:
        """Returns device and driver."""
        return self._function("identity")().decode()

    @contextmanager
    def identified(self, text: str) -> Generator[None]:
        """Sets device and driver, as if they had been replaced."""
        before = self.identity()
        self._function("identify")(text.encode())
        try:
            yield
        finally:
            self._function("identify")(before.encode())

    @contextmanager
    def delays(self, *, kernel: float = 0, copy: float = 0) -> Generator[None]:
        """Adds milliseconds to the time of each kernel and copy."""
        self._function("delay")(ctypes.c_double(kernel), ctypes.c_double(copy))
        try:
            yield
        finally:
            self._function("delay")(ctypes.c_double(0), ctypes.c_double(0))

    @contextmanager
    def lazy(self) -> Generator[None]:
        """Stops queues from starting before the host waits, so that a missing wait always shows."""
        self._function("lazy")(1)
        try:
            yield
        finally:
            self._function("lazy")(0)

    def _function(self, name: str) -> Any:
        return getattr(self.library, f"{self.device}_{name}")
