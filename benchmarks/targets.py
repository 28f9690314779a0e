"""Times of networks with different targets, side by side in one process.

    python benchmarks/targets.py --models mlp bert6 --targets dnnl openblas

Each round runs every target once, by the processor's time on one thread; the median of the rounds
counts, as a ratio to the first target.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import largest_relative_error, random_inputs, run_onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=("mlp", "bert6", "vit_tiny"))
    parser.add_argument("--targets", nargs="+", default=("dnnl", "openblas", "host"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    print(f"| model | {' | '.join(f'{one}, ms | error' for one in arguments.targets)} | ratios |")
    print("| --- |" + " ---: |" * (2 * len(arguments.targets) + 1))
    for name in arguments.models:
        print(_row(name, arguments.targets, arguments.rounds, arguments.batch), flush=True)


def _row(name: str, targets: Sequence[str], rounds: int, batch: int) -> str:
    model = NETWORKS[name](batch=batch)
    inputs = random_inputs(model)
    wanted = run_onnxruntime(model, inputs)
    compiled = [
        byoc_mlir.compile(
            model, () if target == "host" else (target,), threads=1, fallback="allow", prune="off"
        )
        for target in targets
    ]
    errors = [_error(one.run(inputs), wanted) for one in compiled]
    times = interleaved([lambda one=one: one.run(inputs) for one in compiled], rounds)
    cells = [f"{1e3 * t:.2f} | {error:.0e}" for t, error in zip(times, errors, strict=True)]
    ratios = ", ".join(f"{t / times[0]:.2f}" for t in times[1:])
    return f"| {name} | {' | '.join(cells)} | {ratios} |"


def _error(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    return max(largest_relative_error(found[name], wanted[name]) for name in wanted)


def interleaved(runs: Sequence[Callable[[], Mapping[str, object]]], rounds: int) -> list[float]:
    """The median of the seconds of the processor that each takes, run in turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, mine in zip(runs, seconds, strict=True):
            start = time.process_time()
            run()
            mine.append(time.process_time() - start)
    return [median(mine) for mine in seconds]


if __name__ == "__main__":
    main()
