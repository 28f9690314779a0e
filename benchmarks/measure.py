"""Worker processes, and the interleaved rounds that measure them side by side."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from models import write_model
from worker import Started

from byoc_mlir.testing.reference import largest_relative_error

_ROUND_SECONDS = 0.3
"""Seconds of one engine in one round."""

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

PAUSE_SECONDS = 0.05
"""Pause in seconds in which the threads of the engine before fall asleep."""


class WorkerError(Exception):
    """Error of an engine that could not compile or run a model."""


@dataclass(frozen=True)
class Measurement:
    """Measurement of one engine on one model with one number of threads."""

    engine: str
    model: str
    threads: int
    started: Started
    error: float
    """Largest error of the float outputs over the reference's largest value."""
    milliseconds: list[float] = field(default_factory=list[float])

    def quantile(self, fraction: float) -> float:
        """Returns the latency in milliseconds that `fraction` of the runs did not exceed."""
        return float(np.quantile(self.milliseconds, fraction))


@dataclass(frozen=True)
class Failure:
    """Failure of an engine, with the end of its output."""

    engine: str
    model: str
    threads: int
    message: str


def environment(**more: str) -> dict[str, str]:
    """Returns the environment variables of a measured process, which finds bytecode as after an
    installation.
    """
    return {**{name: os.environ[name] for name in os.environ.keys() - {_NO_BYTECODE}}, **more}


class Worker:
    """Process that holds one compiled model; see `worker.py`."""

    def __init__(self, engine: str, files: ModelFiles, threads: int, outputs: Path):
        script = Path(__file__).with_name("worker.py")
        arguments = [engine, files.model, files.inputs, outputs, threads, files.precision]
        self.log = outputs.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, script, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
            )
        self.started = Started(**self._answer())

    def run(self, count: int) -> list[float]:
        """Returns the milliseconds of `count` runs."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # there is no answer then, which says why
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        raise WorkerError(f"exit code {self.process.returncode}: {last_error(self.log)}")


def last_error(log: Path) -> str:
    """Returns the last line of a log that has an error, or the last one."""
    lines = log.read_text().strip().splitlines() or [""]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])


@dataclass(frozen=True)
class ModelFiles:
    """Files of a model: the model, its inputs, and ONNX Runtime's outputs for them."""

    name: str
    model: Path
    inputs: Path
    reference: Path
    precision: str = "f32"


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for numbers of threads, rounds, and the quantile of latency to compare."""
    parser.add_argument("--threads", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--quantile",
        type=float,
        default=0.5,
        help="latency to compare, default the median; lower ones see less of busy neighbours",
    )


def show_progress(result: Measurement | Failure) -> None:
    """Prints one line about a result as progress."""
    outcome = (
        f"{result.quantile(0.5):.3f} ms, error {result.error:.1e}"
        if isinstance(result, Measurement)
        else f"failed: {result.message}"
    )
    print(f"{result.model}, {result.threads} threads, {result.engine}: {outcome}", file=sys.stderr)


def measure(
    models: Sequence[str],
    engines: Sequence[str],
    threads: Sequence[int],
    rounds: int,
    precision: str = "f32",
) -> Iterator[Measurement | Failure]:
    """Measures every combination; the engines of one model and thread count are interleaved."""
    for name in models:
        with tempfile.TemporaryDirectory(prefix="byoc-benchmark-") as folder:
            model, inputs = write_model(name, Path(folder), precision)
            files = ModelFiles(name, model, inputs, Path(folder) / "reference.npz", precision)
            yield from measure_files(files, engines, threads, rounds)


def measure_files(
    files: ModelFiles, engines: Sequence[str], threads: Sequence[int], rounds: int
) -> Iterator[Measurement | Failure]:
    """Measures one model that is on disk; writes its reference first, if ONNX Runtime can."""
    with suppress(WorkerError):
        Worker("onnxruntime", files, 1, files.reference).close()
    for count in threads:
        yield from _measure_engines(files, engines, count, rounds)


def _measure_engines(
    files: ModelFiles, engines: Sequence[str], threads: int, rounds: int
) -> Iterator[Measurement | Failure]:
    workers: list[tuple[Worker, Measurement]] = []
    with ExitStack() as stack:
        for engine in engines:
            outputs = files.reference.with_name(f"{engine}-{threads}.npz")
            try:
                worker = Worker(engine, files, threads, outputs)
            except WorkerError as error:
                yield Failure(engine, files.name, threads, str(error))
                continue
            stack.callback(worker.close)
            error = _largest_error(outputs, files.reference)
            workers.append(
                (worker, Measurement(engine, files.name, threads, worker.started, error))
            )
        yield from _take_turns(workers, rounds)


def _take_turns(
    workers: Sequence[tuple[Worker, Measurement]], rounds: int
) -> Iterator[Measurement | Failure]:
    """Runs every engine once in every round, each time in another order."""
    failures: dict[str, Failure] = {}
    counts: dict[str, int] = {}
    turns = list(workers)
    for _ in range(rounds):
        for worker, measurement in turns:
            engine = measurement.engine
            if engine in failures:
                continue
            try:
                count = counts.get(engine) or _runs_per_round(worker)
                time.sleep(PAUSE_SECONDS)
                worker.run(max(1, count // 10))
                measurement.milliseconds.extend(worker.run(count))
            except WorkerError as error:
                message = str(error)
                failures[engine] = Failure(engine, measurement.model, measurement.threads, message)
            else:
                counts[engine] = count
        turns = turns[1:] + turns[:1]
    for _, measurement in workers:
        yield failures.get(measurement.engine, measurement)


def _runs_per_round(worker: Worker) -> int:
    """Warms up, and returns the number of runs that fill one round."""
    worker.run(3)
    return min(max(3, round(_ROUND_SECONDS * 1e3 / median(worker.run(5)))), 5000)


def _largest_error(outputs: Path, reference: Path) -> float:
    """Returns the largest relative error of the outputs; NaN if there is no reference."""
    if not reference.exists():
        return math.nan
    with np.load(outputs) as got, np.load(reference) as want:
        return max(
            largest_relative_error(got[name], want[name])
            for name in want.files
            if np.issubdtype(want[name].dtype, np.floating)
        )
