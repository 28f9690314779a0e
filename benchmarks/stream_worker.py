"""Worker for one engine that answers a stream of requests in one process.

`stream_worker.py ENGINE MODEL THREADS CLOCK OUTPUTS ORDER INPUTS...` compiles the model, answers
the requests whose numbers are in ORDER, waits for the engine's background compilation, and repeats
the last ones. It prints one JSON line with `Answered`; the first answer to each request is in the
folder OUTPUTS.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from worker import peak_megabytes

_STEADY_REQUESTS = 3
_STEADY_SECONDS = 0.2

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Answered:
    """Cost of a stream."""

    compile_seconds: float
    milliseconds: list[float]
    """Milliseconds of each request, in order."""
    steady_milliseconds: list[float]
    """Milliseconds of each of the last requests, the median of many calls."""
    peak_megabytes: float
    """Peak memory of the process, interpreter and libraries included."""
    beside_seconds: float
    """Processor time of other processes that compiled for this one."""
    beside_megabytes: float
    """Peak memory of the processes that compiled for this one."""


def main() -> None:
    """Answers one stream and prints its cost as JSON."""
    engine_name, model, threads, clock_name, outputs, order, *inputs = sys.argv[1:]
    clock = CLOCKS[clock_name]
    # the libraries print to stdout now and then; the answer keeps a stdout of its own
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = [_loaded(path) for path in inputs]
    module = importlib.import_module(f"engines.{engine_name}")
    start = clock()
    engine = module.Engine(Path(model), int(threads), "f32")
    compile_seconds = clock() - start
    numbers = [int(number) for number in order.split(",")]
    milliseconds: list[float] = []
    seen: set[int] = set()
    for number in numbers:
        start = clock()
        answer = engine.run(requests[number])
        milliseconds.append((clock() - start) * 1e3)
        if number not in seen:
            seen.add(number)
            np.savez(Path(outputs) / f"{number}.npz", allow_pickle=False, **answer)
    if hasattr(engine, "wait"):
        engine.wait()
    last = list(dict.fromkeys(reversed(numbers)))[:_STEADY_REQUESTS]
    steady = [_steady(engine, requests[number], clock) for number in last]
    beside = resource.getrusage(resource.RUSAGE_CHILDREN)
    answered = Answered(
        compile_seconds,
        milliseconds,
        steady,
        peak_megabytes(),
        beside.ru_utime + beside.ru_stime,
        beside.ru_maxrss / 1024,
    )
    print(json.dumps(asdict(answered)), file=answers, flush=True)


def _loaded(path: str) -> Arrays:
    with np.load(path) as stored:
        return {name: np.ascontiguousarray(stored[name]) for name in stored.files}


def _steady(engine: Any, request: Arrays, clock: Callable[[], float]) -> float:
    engine.run(request)
    milliseconds: list[float] = []
    deadline = clock() + _STEADY_SECONDS
    while (start := clock()) < deadline or len(milliseconds) < 3:
        engine.run(request)
        milliseconds.append((clock() - start) * 1e3)
    return float(np.median(milliseconds))


if __name__ == "__main__":
    main()
