"""What primitives were measured to take, and how long measuring may go on."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from byoc_mlir.backends.dnnl.calls import PrimitiveCall
from byoc_mlir.backends.dnnl.likeness import Alike

OVERHEAD = 0.004
"""Milliseconds that any execution takes."""


@dataclass
class Rate:
    """What an implementation got done in the time it was measured."""

    default: float
    """Multiplications or bytes per millisecond, before it was measured."""
    work: float = 0.0
    milliseconds: float = 0.0
    samples: int = 0

    def add(self, work: float, milliseconds: float) -> None:
        """Counts one measurement."""
        self.work += work
        self.milliseconds += max(milliseconds - OVERHEAD, 1e-4)
        self.samples += 1

    def estimate(self, work: float) -> float:
        """The milliseconds of so much work."""
        rate = self.work / self.milliseconds if self.samples else self.default
        return OVERHEAD + work / rate


@dataclass
class Known:
    """What has been measured so far."""

    times: dict[tuple[PrimitiveCall, int], float] = field(
        default_factory=dict[tuple[PrimitiveCall, int], float]
    )
    """Milliseconds of calls, by the number of OpenMP threads."""
    rates: dict[tuple[str, str, int], Rate] = field(
        default_factory=dict[tuple[str, str, int], Rate]
    )
    """By the kind of primitive, the family of implementations and the number of threads."""
    given: Mapping[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """Milliseconds from a file, by `key_of` calls and the number of threads."""
    alike: Alike = field(default_factory=Alike)
    """What was measured, for primitives of other sizes."""

    def time(self, call: PrimitiveCall, threads: int) -> float | None:
        """The milliseconds of a call, if they are known."""
        found = self.times.get((call, threads))
        if found is None and self.given:
            found = self.given.get((key_of(call), threads))
            if found is not None:
                self.times[call, threads] = found
        return found


def key_of(call: PrimitiveCall) -> str:
    """What stands for a call in a file."""
    return hashlib.sha256(repr(call).encode()).hexdigest()[:32]


PROCESS = Known()
"""What has been measured in this process."""


@dataclass
class Measuring:
    """What is known, and for how many seconds the rest may be measured. What is then not known is
    estimated.
    """

    known: Known = field(default_factory=lambda: PROCESS)
    seconds: float = 2.0


_current: ContextVar[Measuring | None] = ContextVar("measuring", default=None)


@contextmanager
def measuring(one: Measuring) -> Generator[None]:
    """Inside, all passes share what is known and the time for measuring."""
    token = _current.set(one)
    try:
        yield
    finally:
        _current.reset(token)


def current_measuring() -> Measuring:
    """What `measuring` says; outside of it, a new one for the process."""
    return _current.get() or Measuring()
