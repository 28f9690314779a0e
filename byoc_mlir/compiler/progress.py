"""Stages of a compilation: timed, and shown in a terminal when they take long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.limits import check_time

if TYPE_CHECKING:
    from rich.status import Status

SHOW_AFTER_SECONDS = 1.0


class Stages:
    """Runs named stages one after the other and keeps their times.

    Attributes:
        seconds: by stage.
        pass_seconds: by pass. What a stage does outside of passes is under its own name in
            parentheses, so that both have the same sum.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.pass_seconds: dict[str, float] = {}
        self._current = ""
        self._status: Status | None = None

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Times what is done inside under `name`, and is the boundary that its errors cross."""
        check_time()
        start, in_passes = time.perf_counter(), self._seconds_in_passes()
        self._current = name
        if self._status is not None:
            self._status.update(f"{name} …")
        try:
            with ir_boundary(name):
                yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.add_pass(f"({name})", seconds - (self._seconds_in_passes() - in_passes))

    def add_pass(self, name: str, seconds: float) -> None:
        """Adds to the time of a pass."""
        self.pass_seconds[name] = self.pass_seconds.get(name, 0.0) + seconds

    def _seconds_in_passes(self) -> float:
        return sum(self.pass_seconds.values())

    @contextmanager
    def shown(self) -> Generator[None]:
        """Shows the stage that is under way on a terminal's standard error, after a second."""
        if not sys.stderr.isatty():
            yield
            return
        timer = threading.Timer(SHOW_AFTER_SECONDS, self._show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if self._status is not None:
                self._status.stop()
                self._status = None

    def _show(self) -> None:
        from rich.console import Console  # few compilations are shown; 40 ms

        self._status = Console(stderr=True).status(f"{self._current} …")
        self._status.start()
