"""Programs of their own for shapes that come again and again, made beside the calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.forks import ForkSafeLock

WORTH_SECONDS = 4.0
"""What shapes must have taken, as far as it would be saved: about what a compilation takes. So no
stream of requests takes more than twice what it would if all were known before."""

LEAST_GAIN = 0.1
"""The part of the time that a program of its own must save."""

_TIMED_SECONDS = 0.2
_TIMED_RUNS = 3


@dataclass(frozen=True)
class Verdict:
    """What one set of shapes takes in the program for all shapes, and in one of its own."""

    shapes: str
    together: float
    """Seconds of a call."""
    alone: float

    @property
    def gain(self) -> float:
        """The part of the time that a program of its own saves, 0 where it is not worth it."""
        gain = 1 - self.alone / self.together
        return gain if gain >= LEAST_GAIN else 0.0

    def __str__(self) -> str:
        return (
            f"{self.shapes} measured: {self.together * 1e3:.3f} ms in the program for all shapes,"
            f" {self.alone * 1e3:.3f} ms in one of its own"
        )


class Promotion:
    """Makes one program at a time, on a thread of its own, and measures whether it is faster."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._thread: threading.Thread | None = None
        self.problem = ""
        """Why the last program could not be made; no other is tried."""

    def is_due(self, seconds: float, verdict: Verdict | None) -> bool:
        """Whether a program is made for shapes whose calls have taken so long in all.

        Args:
            verdict: what was measured for shapes of the model before.
        """
        gain = 1.0 if verdict is None else verdict.gain
        return seconds * gain >= WORTH_SECONDS and not self.problem and not self._is_busy()

    def start(self, shapes: str, candidate: Candidate, decide: Callable[[Verdict], None]) -> None:
        """Makes a program, and measures it, unless another one is being made.

        Args:
            shapes: what errors and verdicts call the shapes.
            candidate: the program.
            decide: told what was measured, on another thread.
        """

        def work() -> None:
            try:
                if not candidate.gains():
                    return
                candidate.make()
                together, alone = _shortest([candidate.run_together, candidate.run_alone])
            except ByocError as error:
                self.problem = f"{shapes}: no program of its own was made: {error}"
                return
            decide(Verdict(shapes, together, alone))

        with self._lock:
            if self._is_busy():
                return
            # not a daemon: an exit waits for it, since LLVM is not left in the middle of its work
            self._thread = threading.Thread(target=work, name="byoc_promotion")
            self._thread.start()

    def wait(self) -> None:
        """Waits for the program that is being made."""
        if self._thread is not None:
            self._thread.join()

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


@dataclass(frozen=True)
class Candidate:
    """A program that one set of shapes may get."""

    gains: Callable[[], bool]
    """Whether it is believed to be faster; if not, it is not made."""
    make: Callable[[], None]
    run_together: Callable[[], object]
    """A call of the program for all shapes, with inputs of these shapes."""
    run_alone: Callable[[], object]
    """The same call of the program that is made."""


def copies(arrays: Sequence[Array]) -> list[Array]:
    """Inputs that the caller does not change."""
    return [array.copy() for array in arrays]


def _shortest(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The seconds of the shortest run of each, in turns, so that what disturbs one disturbs all."""
    shortest = [float("inf")] * len(runs)
    deadline, count = time.perf_counter() + _TIMED_SECONDS, 0
    while count < _TIMED_RUNS or time.perf_counter() < deadline:
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            shortest[number] = min(shortest[number], time.perf_counter() - start)
        count += 1
    return shortest
