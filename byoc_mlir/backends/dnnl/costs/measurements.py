"""What primitives were measured to take, and how long measuring may go on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any

from byoc_mlir.backends.dnnl.costs.likeness import Alike
from byoc_mlir.backends.dnnl.library.calls import PrimitiveCall
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.onednn.library import load_library
from byoc_mlir.rates import current_rates


@dataclass
class Rate:
    """What an implementation got done in the time it was measured: multiplications or bytes."""

    work: float = 0.0
    milliseconds: float = 0.0
    samples: int = 0

    def add(self, work: float, milliseconds: float) -> None:
        """Counts one measurement."""
        self.work += work
        self.milliseconds += max(milliseconds - ASSUMED.primitive_call, 1e-4)
        self.samples += 1

    def estimate(self, work: float) -> float:
        """The milliseconds of so much work, once there are samples."""
        return ASSUMED.primitive_call + work * self.milliseconds / self.work


@dataclass
class Known:
    """What has been measured so far: a part of the rates, see `byoc_mlir.rates`."""

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
    shortest: dict[Hashable, float] = field(default_factory=dict[Hashable, float])
    """Milliseconds of the fastest primitive for a problem, see `problem_of`."""

    def time(self, call: PrimitiveCall, threads: int) -> float | None:
        """The milliseconds of a call, if they are known."""
        found = self.times.get((call, threads))
        if found is None and self.given:
            found = self.given.get((key_of(call), threads))
            if found is not None:
                self.times[call, threads] = found
        return found

    @staticmethod
    def of_json(document: Any) -> Known:
        """What a file says; nothing, where it says nothing.

        Raises:
            ValueError, KeyError, TypeError: it is something else, or was measured with another
                version of the library.
        """
        if document is None:
            return Known()
        if document["library"] != _library():
            raise ValueError(
                f"oneDNN is {_library()} here, they were measured with {document['library']!r}"
            )
        given = {
            (str(one["call"]), int(one["threads"])): _number(one, "milliseconds")
            for one in document["times"]
        }
        rates = {
            (str(one["kind"]), str(one["family"]), int(one["threads"])): Rate(
                _number(one, "work"),
                _number(one, "milliseconds"),
                int(one["samples"]),
            )
            for one in document["rates"]
        }
        return Known({}, rates, given)

    def as_json(self) -> dict[str, Any]:
        """All of it, sorted."""
        times = {(key_of(call), threads): time for (call, threads), time in self.times.items()}
        return {
            "library": _library(),
            "times": [
                {"call": call, "threads": threads, "milliseconds": milliseconds}
                for (call, threads), milliseconds in sorted({**self.given, **times}.items())
            ],
            "rates": [
                {"kind": kind, "family": family, "threads": threads, **asdict(rate)}
                for (kind, family, threads), rate in sorted(
                    self.rates.items(), key=lambda one: one[0]
                )
            ],
        }


def key_of(call: PrimitiveCall) -> str:
    """What stands for a call in a file."""
    return hashlib.sha256(repr(call).encode()).hexdigest()[:32]


def _number(entry: Mapping[str, Any], name: str) -> float:
    number = float(entry[name])
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} is {number}, accepted are numbers from 0 on")
    return number


def _library() -> str:
    return ".".join(map(str, load_library().version))


def _known() -> Known:
    return current_rates().part("dnnl", Known.of_json)


_SECONDS = 2.0
"""What measuring for one model may take."""


@dataclass
class Measuring:
    """What is known, and for how many seconds of this thread the rest may be measured. What is then
    not known is estimated.
    """

    known: Known = field(default_factory=_known)
    seconds: float = field(default_factory=lambda: _SECONDS * current_rates().may_measure)


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
    """What `measuring` says; outside of it, what `current_rates` has, and time of its own."""
    return _current.get() or Measuring()
