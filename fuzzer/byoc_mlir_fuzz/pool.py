"""Workers that judge cases, each restarted when a case kills it or takes too long."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from byoc_mlir.errors import ExecutionError
from byoc_mlir.testing.forked import CONTEXT, PRELOADED
from byoc_mlir_fuzz.case import Case, Outcome, Settings
from byoc_mlir_fuzz.oracles import ORACLES
from byoc_mlir_fuzz.worker import serve

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

CONTEXT.set_forkserver_preload([*PRELOADED, "byoc_mlir_fuzz.judge"])

_STARTS_WITHIN = 120.0


class Worker:
    """Child process, with the case that it works on."""

    def __init__(self, settings: Settings, timeout: float, folder: Path):
        self.settings = settings
        self.timeout = timeout
        self.log = folder / f"worker-{id(self):x}.log"
        self.case: Case | None = None
        self._without: frozenset[str] = frozenset()
        self._step = ""
        self._deadline = 0.0
        self._process: ForkServerProcess | None = None
        self._connection: Connection | None = None

    def give(self, case: Case, without: frozenset[str] = frozenset()) -> None:
        """Starts on a case, in a new process if the last one is gone."""
        if self._connection is None:
            self._start()
        self.case, self._without, self._step = case, without, "compile"
        self._deadline = time.monotonic() + self.timeout
        self.connection.send((case, without))

    @property
    def connection(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def outcome(self) -> Outcome | None:
        """Returns the outcome of the case, or `None` while it runs."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, Outcome):
                    self.case = None
                    return message
                self._step = message
        except (EOFError, ConnectionError):
            return self._died()
        if time.monotonic() > self._deadline:
            return self._hung()
        return None

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = self.case = None

    def _start(self) -> None:
        here, there = CONTEXT.Pipe()
        process = CONTEXT.Process(target=serve, args=(there, self.settings, str(self.log)))
        process.daemon = True
        process.start()
        there.close()
        self._process, self._connection = process, here
        try:
            if here.poll(_STARTS_WITHIN) and here.recv() == "ready":
                return
        except EOFError:
            pass
        self.stop()
        raise ExecutionError(f"a worker of the fuzzer does not start: {self._log_tail(2000)}")

    def _died(self) -> Outcome | None:
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        stack = self._log_tail(1500)
        place = next((line for line in stack.splitlines() if "/byoc_mlir/" in line), "")
        where = place.rpartition("/")[2].replace('"', "")
        return self._ended("crash", f"{name} in {self._step}: {where}\n{stack}", f"{name} {where}")

    def _hung(self) -> Outcome | None:
        return self._ended(
            "hang", f"no answer after {self.timeout:.0f} s, in {self._step}", self._step
        )

    def _ended(self, kind: Any, message: str, signature: str) -> Outcome | None:
        """Returns an outcome; if an oracle failed, restarts the case without it and returns
        `None`."""
        case, without, step = self.case, self._without, self._step
        self.stop()
        if step not in ORACLES:
            return Outcome(kind, message, signature)
        assert case is not None
        self.give(case, without | {step})
        return None

    def _log_tail(self, length: int) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        start = text.find("Fatal Python error")
        return text[start : start + length] if start >= 0 else text[-length:]


class Pool:
    """Pool of workers."""

    def __init__(self, settings: Settings, jobs: int, timeout: float, folder: Path):
        self._workers = [Worker(settings, timeout, folder) for _ in range(jobs)]

    def judged(self, cases: Iterator[Case]) -> Iterator[tuple[Case, Outcome]]:
        """Yields every case with its outcome, in the order in which they end."""
        more = True
        while True:
            for worker in self._workers:
                if worker.case is None and more:
                    case = next(cases, None)
                    more = case is not None
                    if case is not None:
                        worker.give(case)
            busy = [worker for worker in self._workers if worker.case is not None]
            if not busy:
                return
            wait([worker.connection for worker in busy], timeout=0.5)
            for worker in busy:
                case = worker.case
                outcome = worker.outcome()
                if outcome is not None:
                    yield cast(Case, case), outcome

    def judge(self, case: Case) -> Outcome:
        """Returns the outcome of one case; no other case may be running."""
        ((_, outcome),) = self.judged(iter([case]))
        return outcome

    def stop(self) -> None:
        """Ends all workers."""
        for worker in self._workers:
            worker.stop()


@contextmanager
def worker_pool(settings: Settings, jobs: int, timeout: float) -> Generator[Pool]:
    """Yields a pool, and stops it when the context is left."""
    with tempfile.TemporaryDirectory(prefix="byoc-fuzz-") as folder:
        pool = Pool(settings, jobs, timeout, Path(folder))
        try:
            yield pool
        finally:
            pool.stop()
