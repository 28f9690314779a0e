"""How long a new process takes to the first answer, and whether what is loaded runs as fast.

    python benchmarks/start.py                  ResNet-50
    python benchmarks/start.py bert6 --threads 1

Every start is a process of its own; the kinds of start take turns, and the quickest of each is
shown. `read` is one pass over the file, which a start contains, as the file is hashed. Then the
model as it was compiled and as it is loaded from a shared object run in one process, in turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from models import known_models, write_model

import byoc_mlir
from byoc_mlir.runtime import Executable

_ROUND_SECONDS = 0.2

_START = """
import json, sys, time
import numpy as np
kind, path, inputs, cache, threads = sys.argv[1:]
inputs = dict(np.load(inputs))
marks = [time.perf_counter()]
with open(path, "rb") as file:
    while file.read(1 << 20):
        pass
marks.append(time.perf_counter())
import byoc_mlir
marks.append(time.perf_counter())
if kind == "load":
    executable = byoc_mlir.load(path, threads=int(threads))
else:
    executable = byoc_mlir.compile(
        path, threads=int(threads), fallback="allow", cache=cache or False
    )
marks.append(time.perf_counter())
executable.run(inputs)
marks.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(marks, marks[1:])]))
"""


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="resnet50", choices=known_models())
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    print(f"{arguments.model}, {arguments.threads} threads\n")
    with tempfile.TemporaryDirectory() as name:
        model, inputs = write_model(arguments.model, Path(name))
        artifact = model.with_suffix(".so")
        with byoc_mlir.compile(
            model, threads=arguments.threads, fallback="allow", cache=False
        ) as compiled:
            compiled.export_library(artifact, shapes=_shapes(inputs))
            compare_starts(model, artifact, inputs, arguments.threads, arguments.starts)
            with byoc_mlir.load(artifact, threads=arguments.threads) as loaded:
                compare_latency(compiled, loaded, inputs, arguments.rounds)


def compare_starts(model: Path, artifact: Path, inputs: Path, threads: int, count: int) -> None:
    """Prints a table of the quickest start of each kind."""
    cache = model.with_name("cache")
    kinds = {
        "compiled": ("compile", model, inputs, ""),
        "from the cache": ("compile", model, inputs, cache),
        "loaded": ("load", artifact, inputs, ""),
    }
    times: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for number in range(count + 1):
        for kind, start in kinds.items():
            seconds = _start(*start, threads)
            if number:  # the first one fills the cache
                times[kind].append(seconds)
    print("| seconds | read | import | compile or load | first run | all, without reading |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind, rows in times.items():
        read, *rest = min(rows, key=lambda row: sum(row[1:]))
        cells = (read, *rest, sum(rest) - read)
        print(f"| {kind} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")


def compare_latency(compiled: Executable, loaded: Executable, inputs: Path, rounds: int) -> None:
    """Prints the latency of both."""
    with np.load(inputs) as stored:
        arrays = dict(stored)
    times: dict[str, list[float]] = {"compiled": [], "loaded": []}
    for _ in range(rounds):
        for kind, executable in (("compiled", compiled), ("loaded", loaded)):
            executable.run(arrays)  # wakes the threads
            deadline = time.perf_counter() + _ROUND_SECONDS
            while (start := time.perf_counter()) < deadline:
                executable.run(arrays)
                times[kind].append((time.perf_counter() - start) * 1e3)
    print("\n| milliseconds a run | least | 10 % | median |\n| --- | ---: | ---: | ---: |")
    for kind, values in times.items():
        cells = np.quantile(values, (0, 0.1, 0.5))
        print(f"| {kind} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")


def _start(*words: object) -> list[float]:
    command = [sys.executable, "-c", _START, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _shapes(inputs: Path) -> dict[str, tuple[int, ...]]:
    with np.load(inputs) as stored:
        return {name: array.shape for name, array in stored.items()}


if __name__ == "__main__":
    main()
