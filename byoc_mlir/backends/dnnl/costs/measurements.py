"""Measured latencies of primitives, and the time limit of measurements."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

from byoc_mlir.backends.dnnl.costs.likeness import Alike, likeness_of, problem_of
from byoc_mlir.backends.dnnl.library.calls import PrimitiveCall
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.calibration import Calibration, Measurement, current_calibration
from byoc_mlir.errors import ByocError
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.onednn.library import load_library
from byoc_mlir.records import record

GROUP = "dnnl"
"""Calibration group of these measurements."""

_LEAST_MILLISECONDS = 1e-6
"""Minimum of a measurement, because a clock may report that no time has passed."""


@dataclass
class Rate:
    """Total work of an implementation, in MACs or bytes, and the measured time of that work."""

    work: float = 0.0
    milliseconds: float = 0.0
    samples: int = 0

    def add(self, work: float, milliseconds: float) -> None:
        """Adds one measurement."""
        self.work += work
        self.milliseconds += max(milliseconds - ASSUMED.primitive_call, 1e-4)
        self.samples += 1

    def estimate(self, work: float) -> float:
        """Estimates the milliseconds of an amount of work; requires at least one measurement."""
        return ASSUMED.primitive_call + work * self.milliseconds / self.work


@record
class Sample:
    """Properties of a measured primitive by which the measurement applies to others; they make up
    its key.

    `likeness` and `problem` are hashes of the results of `likeness_of` and `problem_of`, or empty.
    """

    kind: str
    family: str
    """Implementation, or the layouts of a reorder."""
    threads: int
    work: float
    likeness: str
    problem: str
    call: str

    @staticmethod
    def of(described: DescribedPrimitive, family: str, threads: int, work: float) -> Sample:
        """Returns the sample of a primitive on the given number of threads.

        Args:
            work: MACs or bytes.
        """
        likeness, problem = (
            "" if one is None else _hashed(one)
            for one in (likeness_of(described, family, threads), problem_of(described, threads))
        )
        call = described.call
        return Sample(call.kind, family, threads, work, likeness, problem, _hashed(call))

    @staticmethod
    def of_key(key: str) -> Sample:
        """Parses the key of a measurement.

        Raises:
            ByocError: the key has another form.
        """
        try:
            _, kind, family, threads, work, *hashes = key.split("/")
            return Sample(kind, family, int(threads), float(work), *hashes)
        except (ValueError, TypeError) as error:
            raise ByocError(f"the measurement '{key}' is none of a primitive: {error}") from error

    @property
    def key(self) -> str:
        """Returns the key of the measurement."""
        hashes = (self.likeness, self.problem, self.call)
        return "/".join((GROUP, self.kind, self.family, str(self.threads), str(self.work), *hashes))

    @property
    def family_key(self) -> tuple[str, str, int]:
        """Returns the key of the sample's rate."""
        return self.kind, self.family, self.threads


class PrimitiveTimes:
    """Stored latencies of primitives, with estimates derived from them."""

    def __init__(self, calibration: Calibration):
        self._store = calibration
        self._times: dict[tuple[str, int], float] = {}
        self._calibration: dict[tuple[str, str, int], Rate] = {}
        self._alike = Alike()
        self._shortest: dict[str, float] = {}
        for one in list(calibration.group(GROUP).values()):
            if one.source == _library():
                self._index(Sample.of_key(one.key), one.number)
            elif not calibration.is_kept:
                raise ByocError(
                    f"oneDNN is {_library()} here; the calibration's primitives were measured with"
                    f" {one.source!r}"
                )

    def exact(self, call: PrimitiveCall, threads: int) -> float | None:
        """Returns the measured milliseconds of a call, or `None`."""
        return self._times.get((_hashed(call), threads)) if self._times else None

    def alike(self, sample: Sample) -> float | None:
        """Estimates the milliseconds from a similar primitive with a similar amount of work.

        Returns `None` if there is none.
        """
        return self._alike.estimate(sample.likeness, sample.work)

    def rate(self, sample: Sample) -> Rate:
        """Returns the rate of the sample's family."""
        return self._calibration.get(sample.family_key, Rate())

    def shortest(self, sample: Sample) -> float | None:
        """Returns the milliseconds of the fastest primitive for the same problem."""
        return self._shortest.get(sample.problem)

    def add(self, sample: Sample, milliseconds: float) -> None:
        """Keeps a measurement."""
        milliseconds = max(milliseconds, _LEAST_MILLISECONDS)
        self._store.add(Measurement(sample.key, "ms", _library(), milliseconds))
        self._index(sample, milliseconds)

    def _index(self, sample: Sample, milliseconds: float) -> None:
        self._times[sample.call, sample.threads] = milliseconds
        self._calibration.setdefault(sample.family_key, Rate()).add(sample.work, milliseconds)
        if sample.likeness:
            self._alike.add(sample.likeness, sample.work, milliseconds)
        if sample.problem:
            before = self._shortest.get(sample.problem, milliseconds)
            self._shortest[sample.problem] = min(before, milliseconds)


@lru_cache(1 << 14)
def _hashed(key: Hashable) -> str:
    """Returns the hash of a call, a likeness or a problem, as text for a file."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:32]


def _library() -> str:
    return f"oneDNN {'.'.join(map(str, load_library().version))}"


def _known() -> PrimitiveTimes:
    return current_calibration().view(PrimitiveTimes)


_SECONDS = 2.0
"""Maximum seconds of measurements for one model."""


@dataclass
class Measuring:
    """Known latencies, and the seconds of this thread that remain for measurements.

    Once these seconds are used up, unknown latencies are estimated.
    """

    known: PrimitiveTimes = field(default_factory=_known)
    seconds: float = field(default_factory=lambda: _SECONDS * current_calibration().may_measure)


_current: ContextVar[Measuring | None] = ContextVar("measuring", default=None)


@contextmanager
def measuring(one: Measuring) -> Generator[None]:
    """Shares known latencies and the remaining time among all passes in the `with` body."""
    token = _current.set(one)
    try:
        yield
    finally:
        _current.reset(token)


def current_measuring() -> Measuring:
    """Returns the object that `measuring` shares, or outside of it a new one, from
    `current_calibration`.
    """
    return _current.get() or Measuring()
