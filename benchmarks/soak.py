"""Memory growth of a process that compiles, runs and closes models repeatedly.

    python benchmarks/soak.py                                   300 cycles, 100,000 runs
    python benchmarks/soak.py --models symbolic --workers 4     four at once, for each shape anew

Growth is of the resident memory, after the first cycles (or tenth of the runs), with garbage
collected. With `--limit` the command fails when any growth is larger.
"""

from __future__ import annotations

import argparse
import gc
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.system.memory import return_freed_memory

_CHANNELS = 16
_TARGETS = {"host": (), "dnnl": ("dnnl",), "symbolic": ("dnnl",)}
_SHAPES = 3
"""Number of batch sizes with which each executable of a symbolic model runs."""


def main() -> int:
    """Runs the benchmark; returns 1 if any growth exceeds `--limit`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cycles", type=int, default=300, help="of compile, run and close")
    parser.add_argument("--first", type=int, default=20, help="cycles that do not count")
    parser.add_argument("--runs", type=int, default=100_000, help="of one executable")
    parser.add_argument("--models", nargs="+", default=list(_TARGETS), choices=list(_TARGETS))
    parser.add_argument("--threads", type=int, default=1, help="OpenMP threads of a run")
    parser.add_argument("--workers", type=int, default=1, help="Python threads that work at once")
    parser.add_argument("--limit", type=float, help="megabytes of growth that are accepted")
    arguments = parser.parse_args()
    print("| model | megabytes | cycles | more megabytes | runs | more megabytes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    most = 0.0
    with ThreadPoolExecutor(arguments.workers) as pool:
        for kind in arguments.models:
            cycles = soak_cycles(kind, arguments, pool)
            size = resident_megabytes()
            runs = soak_runs(kind, arguments, pool) if arguments.runs else 0.0
            row = (kind, f"{size:.0f}", arguments.cycles, f"{cycles:.2f}", arguments.runs)
            print(f"| {' | '.join(map(str, row))} | {runs:.2f} |", flush=True)
            most = max(most, cycles, runs)
    return int(arguments.limit is not None and most > arguments.limit)


def soak_cycles(kind: str, arguments: argparse.Namespace, pool: ThreadPoolExecutor) -> float:
    """Returns the growth in megabytes by cycles of compiling, running and closing."""
    model = network(kind)

    def cycle(_: int) -> None:
        with compiled(model, kind, arguments.threads) as executable:
            for inputs in requests(kind):
                executable.run(inputs)

    return growth(cycle, arguments.first, arguments.cycles, pool, arguments.workers)


def soak_runs(kind: str, arguments: argparse.Namespace, pool: ThreadPoolExecutor) -> float:
    """Returns the growth in megabytes by runs of one executable."""
    inputs = requests(kind)
    with compiled(network(kind), kind, arguments.threads) as executable:

        def run(number: int) -> None:
            executable.run(inputs[number % len(inputs)])

        return growth(run, arguments.runs // 10, arguments.runs, pool, arguments.workers)


def growth(
    work: Callable[[int], None], first: int, count: int, pool: ThreadPoolExecutor, workers: int
) -> float:
    """Returns the growth in megabytes of the calls of `work` after the first ones."""

    def work_on(numbers: range) -> None:
        for number in numbers:
            work(number)

    sizes: list[float] = []
    for part in (range(first), range(first, count)):
        for _ in pool.map(work_on, [part[start::workers] for start in range(workers)]):
            pass
        sizes.append(resident_megabytes())
    return sizes[1] - sizes[0]


def resident_megabytes() -> float:
    """Returns the resident memory of this process in megabytes, with garbage collected."""
    gc.collect()
    return_freed_memory()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def compiled(model: ModelProto, kind: str, threads: int) -> Executable:
    """Returns a new executable."""
    return byoc_mlir.compile(model, _TARGETS[kind], threads=threads, fallback="allow", cache=False)


def network(kind: str) -> ModelProto:
    """Returns sums of exponentials, after a convolution unless for the host; the batch is symbolic
    if `kind` is.
    """
    node = helper.make_node
    sums = [node("Exp", ["positive"], ["e"]), node("ReduceSum", ["e", "axes"], ["y"], keepdims=0)]
    weights = np.random.default_rng(0).standard_normal((_CHANNELS, _CHANNELS, 3, 3))
    convolution = node("Conv", ["x", "w"], ["convolved"], pads=[1] * 4)
    nodes = [node("Relu", ["x" if kind == "host" else "convolved"], ["positive"]), *sums]
    constants = [numpy_helper.from_array(np.array([2, 3]), "axes")]
    if kind != "host":
        nodes.insert(0, convolution)
        constants.append(numpy_helper.from_array(weights.astype(np.float32), "w"))
    batch = "batch" if kind == "symbolic" else 1
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, _CHANNELS, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, _CHANNELS])
    graph = helper.make_graph(nodes, "soak", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def requests(kind: str) -> Sequence[dict[str, np.ndarray]]:
    """Returns the inputs of an executable's runs."""
    batches = range(1, 1 + (_SHAPES if kind == "symbolic" else 1))
    return [{"x": np.ones((batch, _CHANNELS, 8, 8), np.float32)} for batch in batches]


if __name__ == "__main__":
    raise SystemExit(main())
