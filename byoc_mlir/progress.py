"""Status of running work, shown on a terminal if it takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from byoc_mlir.locks import ForkSafeLock

if TYPE_CHECKING:
    from rich.status import Status

SHOW_AFTER_SECONDS = 1.0


class Work:
    """One line on a terminal's standard error, which appears after a second."""

    def __init__(self, text: str):
        self.text = text
        self._status: Status | None = None
        self._lock = ForkSafeLock()
        self._timer = threading.Timer(SHOW_AFTER_SECONDS, self._show)
        self._timer.daemon = True

    def start(self) -> None:
        """Starts the second after which the line appears."""
        self._timer.start()

    def say(self, text: str) -> None:
        """Sets the text of the line."""
        with self._lock:
            self.text = text
            if self._status is not None:
                self._status.update(f"{text} …")

    def stop(self) -> None:
        """Removes the line."""
        self._timer.cancel()
        with self._lock:
            if self._status is not None:
                self._status.stop()
            self._status = None

    def _show(self) -> None:
        from rich.console import Console  # little is shown; 40 ms

        with self._lock:
            self._status = Console(stderr=True).status(f"{self.text} …")
            self._status.start()


_current: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def shown(text: str) -> Generator[None]:
    """Shows the work in the context; nested work uses the line of the outer one."""
    outer = _current.get()
    if outer is not None:
        before = outer.text
        outer.say(text)
        try:
            yield
        finally:
            outer.say(before)
        return
    if not sys.stderr.isatty():
        yield
        return
    work = Work(text)
    token = _current.set(work)
    work.start()
    try:
        yield
    finally:
        work.stop()
        _current.reset(token)
