"""One engine with one model in one process, driven over stdin and stdout.

`worker.py ENGINE MODEL INPUTS OUTPUTS THREADS PRECISION` compiles, runs once, writes the
outputs and prints one JSON line with `Started`. It waits for what is compiled beside the calls.
Then every line `n` on stdin is answered by a JSON list of the milliseconds that n runs took. It
ends with its stdin.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Started:
    """Cost of the first output."""

    import_seconds: float
    compile_seconds: float
    first_run_seconds: float
    peak_megabytes: float
    """Peak memory of the process, interpreter and libraries included."""


def peak_megabytes() -> float:
    """Returns the peak resident memory of this process in megabytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status")


def main() -> None:
    """Runs one engine, driven over stdin and stdout."""
    engine_name, model, inputs_path, outputs_path, threads, precision = sys.argv[1:]
    # the libraries print to stdout now and then; the protocol keeps a stdout of its own
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with np.load(inputs_path) as stored:
        inputs = {name: np.asarray(stored[name], order="C") for name in stored.files}

    marks = [time.perf_counter()]
    module = importlib.import_module(f"engines.{engine_name}")
    marks.append(time.perf_counter())
    engine = module.Engine(Path(model), int(threads), precision)
    marks.append(time.perf_counter())
    outputs = engine.run(inputs)
    marks.append(time.perf_counter())
    importing, compiling, running = np.diff(marks).tolist()
    started = Started(importing, compiling, running, peak_megabytes())
    np.savez(outputs_path, allow_pickle=False, **outputs)
    print(json.dumps(asdict(started)), file=answers, flush=True)
    if hasattr(engine, "wait"):
        engine.wait()

    run, clock = engine.run, time.perf_counter
    for line in sys.stdin:
        milliseconds: list[float] = []
        for _ in range(int(line)):
            start = clock()
            run(inputs)
            milliseconds.append((clock() - start) * 1e3)
        print(json.dumps(milliseconds), file=answers, flush=True)


if __name__ == "__main__":
    main()
