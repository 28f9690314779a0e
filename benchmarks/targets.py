"""Times of networks with different targets, side by side in one process.

    python benchmarks/targets.py --models mlp bert6 --targets dnnl openblas
    python benchmarks/targets.py --models mobilenet_v2 --targets dnnl host tuned --tune 60

Each round runs every target once, by the processor time of all threads of the process; the result
is the median over the rounds, as a ratio to the first target. `host` is the host alone, `tuned` the
host tuned for the given seconds. Nothing is cached, so an earlier run does not matter.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from onnx import ModelProto

import byoc_mlir
from byoc_mlir import Executable
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import largest_relative_error, random_inputs, run_onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=("mlp", "bert6", "vit_tiny"))
    parser.add_argument("--targets", nargs="+", default=("dnnl", "openblas", "host"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tune", type=float, default=60.0)
    arguments = parser.parse_args()
    if "tuned" in arguments.targets[:-1]:
        parser.error("'tuned' comes last: what is compiled after it is tuned, too")
    os.environ["BYOC_CACHE"] = "off"
    print(f"| model | {' | '.join(f'{one}, ms | error' for one in arguments.targets)} | ratios |")
    print("| --- |" + " ---: |" * (2 * len(arguments.targets) + 1))
    for name in arguments.models:
        print(_row(name, arguments), flush=True)


def _row(name: str, arguments: argparse.Namespace) -> str:
    model = NETWORKS[name](batch=arguments.batch)
    inputs = random_inputs(model)
    wanted = run_onnxruntime(model, inputs)
    compiled = [_compiled(model, target, arguments) for target in arguments.targets]
    errors = [_error(one.run(inputs), wanted) for one in compiled]
    times = interleaved([lambda one=one: one.run(inputs) for one in compiled], arguments.rounds)
    cells = [f"{1e3 * t:.2f} | {error:.0e}" for t, error in zip(times, errors, strict=True)]
    ratios = ", ".join(f"{t / times[0]:.2f}" for t in times[1:])
    return f"| {name} | {' | '.join(cells)} | {ratios} |"


def _compiled(model: ModelProto, target: str, arguments: argparse.Namespace) -> Executable:
    return byoc_mlir.compile(
        model,
        () if target in ("host", "tuned") else (target,),
        threads=arguments.threads,
        fallback="allow",
        prune="off",
        tune=arguments.tune if target == "tuned" else None,
    )


def _error(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    return max(largest_relative_error(found[name], wanted[name]) for name in wanted)


def interleaved(
    runs: Sequence[Callable[[], Mapping[str, object]]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Returns the median seconds of each function, with interleaved calls."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, mine in zip(runs, seconds, strict=True):
            start = clock()
            run()
            mine.append(clock() - start)
    return [median(mine) for mine in seconds]


if __name__ == "__main__":
    main()
