"""Time of a new process to the first output, and latency of a loaded model.

    python benchmarks/start.py                  five networks
    python benchmarks/start.py bert6 --threads 1

Every start is a separate process, with the bytecode that an installation leaves. The kinds of
start are interleaved, and the quickest of each is shown. The `first` process finds an empty cache,
so it measures the calibration of the machine, too: `calibration`, which is in no other column. It
imports NumPy, ONNX, llvmlite and xDSL first: `libraries`. `beyond` is all that follows until the
first output. `read` is one pass over the file, which a start contains, as the file is hashed. For
one model alone, the compiled one and the one loaded from a shared object then run interleaved in
one process.
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
from measure import environment
from models import known_models, write_model
from start_worker import Start

import byoc_mlir
from byoc_mlir.runtime import Executable

_MODELS = ("mlp", "mobilenet_v2", "resnet18", "bert6", "resnet50")

_ROUND_SECONDS = 0.2


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=_MODELS, choices=[*known_models(), _MODELS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    for model in arguments.models:
        print(f"{model}, {arguments.threads} threads\n")
        compare(model, arguments, latency=len(arguments.models) == 1)


def compare(name: str, arguments: argparse.Namespace, *, latency: bool) -> None:
    """Prints the starts of a model, and its latency if that is asked for."""
    threads: int = arguments.threads
    with tempfile.TemporaryDirectory() as folder:
        model, inputs = write_model(name, Path(folder))
        artifact = model.with_suffix(".so")
        with byoc_mlir.compile(model, threads=threads, fallback="allow", cache=False) as compiled:
            compiled.export_library(artifact, shapes=_shapes(inputs))
            compare_starts(model, artifact, inputs, threads, arguments.starts)
            if latency:
                with byoc_mlir.load(artifact, threads=threads) as loaded:
                    compare_latency(compiled, loaded, inputs, arguments.rounds)


def compare_starts(model: Path, artifact: Path, inputs: Path, threads: int, count: int) -> None:
    """Prints a table of the quickest start of each kind."""
    folder = model.parent
    starts: dict[str, list[Start]] = {"first": [], "from the cache": [], "loaded": []}
    for number in range(count + 1):
        some = {
            "first": _start("first", model, inputs, threads, folder / f"empty-{number}"),
            "from the cache": _start("cached", model, inputs, threads, folder / "cache"),
            "loaded": _start("load", artifact, inputs, threads, folder / "cache"),
        }
        for kind, start in some.items() if number else ():  # the first ones fill the cache
            starts[kind].append(start)
    print(
        "| seconds | read | libraries | import | compile or load | first run | beyond"
        " | calibration | MB |"
    )
    print("| --- |" + " ---: |" * 8)
    for kind, rows in starts.items():
        best = min(rows, key=lambda start: start.beyond)
        parts = (best.read, best.libraries, best.imports, best.compiling, best.first_run)
        seconds = (*parts, best.beyond)
        cells = [f"{one:.3f}" for one in (*seconds, best.calibration)]
        print(f"| {' | '.join([kind, *cells, f'{best.peak_megabytes:.0f}'])} |", flush=True)
    print()


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


def _start(kind: str, path: Path, inputs: Path, threads: int, cache: Path) -> Start:
    script = Path(__file__).with_name("start_worker.py")
    done = subprocess.run(
        [sys.executable, script, kind, path, inputs, str(threads)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment(BYOC_CACHE_DIR=str(cache)),
    )
    return Start(**json.loads(done.stdout))


def _shapes(inputs: Path) -> dict[str, tuple[int, ...]]:
    with np.load(inputs) as stored:
        return {name: array.shape for name, array in stored.items()}


if __name__ == "__main__":
    main()
