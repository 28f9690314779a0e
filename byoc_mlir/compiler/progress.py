"""Stages of a compilation: timed, and shown on a terminal when they take long."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.limits import check_time
from byoc_mlir.progress import shown


class Stages:
    """Runner of named stages, which keeps their times.

    Attributes:
        seconds: time of each stage.
        pass_seconds: time of each pass. The time of a stage outside of passes has the stage's name
          in parentheses, so that both have the same sum.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.pass_seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Times the code in the `with` body under `name`, and attributes its errors to the
        stage.
        """
        check_time()
        start, in_passes = time.perf_counter(), self._seconds_in_passes()
        try:
            with shown(name), ir_boundary(name):
                yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.add_pass(f"({name})", seconds - (self._seconds_in_passes() - in_passes))

    def add_pass(self, name: str, seconds: float) -> None:
        """Adds seconds to the time of a pass."""
        self.pass_seconds[name] = self.pass_seconds.get(name, 0.0) + seconds

    def _seconds_in_passes(self) -> float:
        return sum(self.pass_seconds.values())
