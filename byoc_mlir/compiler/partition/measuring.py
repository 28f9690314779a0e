"""Measurement of a region's latency on its backend and on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from byoc_mlir.compiler.partition.alone import alone, alone_on_host
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.limits import check_time
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.tensors import TensorInfo

MEASURED_SECONDS = 0.1
MEASURED_RUNS = 10

Compile = Callable[[ModuleOp], Program]
"""Function that compiles a partitioned module."""


def measured_times(region: FuncOp, compile_part: Compile) -> RegionTimes:
    """Measures the latency of a region on its backend and on the host, as the shortest of several
    runs.
    """
    programs = compile_part(alone(region)), compile_part(alone_on_host(region))
    backend, host = (1e3 * seconds for seconds in _shortest(*programs))
    return RegionTimes(str(region_compiler(region)), "measured", backend, host)


def _shortest(*programs: Program) -> list[float]:
    """Returns the shortest run of each program in milliseconds.

    Runs of the programs are interleaved, so that load affects all of them.
    """
    instances = [Instance(program) for program in programs]
    inputs = [_random(spec) for spec in programs[0].inputs]
    try:
        return _shortest_runs(instances, inputs)
    finally:
        for instance in instances:
            instance.close()


def _shortest_runs(instances: list[Instance], inputs: list[Array]) -> list[float]:
    for instance in instances:
        instance.run(inputs)
    shortest = [float("inf")] * len(instances)
    deadline, runs = time.perf_counter() + MEASURED_SECONDS * len(instances), 0
    while runs < MEASURED_RUNS or time.perf_counter() < deadline:
        check_time()
        for index, instance in enumerate(instances):
            start = time.perf_counter()
            instance.run(inputs)
            shortest[index] = min(shortest[index], time.perf_counter() - start)
        runs += 1
    return shortest


def _random(spec: TensorInfo) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns random positive values, which cause no overflows or denormal results."""
    generator = np.random.default_rng(0)
    if spec.dtype.kind in "iub":
        return generator.integers(0, 2, spec.static_shape).astype(spec.dtype)
    return generator.uniform(0.5, 1.5, spec.static_shape).astype(spec.dtype)
