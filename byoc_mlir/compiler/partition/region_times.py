"""Measured times of regions on their backend and on the host; equal regions share them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from byoc_mlir.calibration import Calibration, Measurement
from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.dialects.byoc import TIMES, WEIGHT_GROWTH, region_compiler
from byoc_mlir.limits import check_time
from byoc_mlir.lowering.region_calls import region_functions
from byoc_mlir.runtime.instance import Instance, instance_of
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.transforms.inline_partitions import inline_regions

REGIONS = "regions"
"""Calibration group of these measurements."""

Compile = Callable[[ModuleOp], Program]
"""Function that compiles a partitioned module."""

MEASURED_SECONDS = 0.1
MEASURED_RUNS = 10

_NAME = "region"
"""Name of a region that is compiled as a separate model."""

_WEIGHT = re.compile(r'#relay\.weight<"[^"]*", "[^"]*">')
_NUMBERS = re.compile(r'("[^"]*")|\d+')


@dataclass(frozen=True)
class Keys:
    """Keys under which a region's times are stored."""

    alike: str
    """Key of equal regions: names and contents of weights do not matter."""
    own: str
    """Key of a region of a model at all sizes, identified by its weights."""

    @staticmethod
    def of(region: FuncOp, options: CompileOptions) -> Keys:
        """Returns the keys of an outlined region for the options of this compilation."""
        text = str(_alone(region))
        said = (options.targets, options.threads, options.denormals, options.disable)
        alike = digest(_WEIGHT.sub("weight", text), *said)
        if _WEIGHT.search(text) is None:
            return Keys(alike, alike)
        return Keys(alike, digest(_NUMBERS.sub(lambda one: one[1] or "", text), *said))


def find_times(calibration: Calibration, keys: Keys) -> RegionTimes | None:
    """Returns the stored measurement of the region, or of one that is equal except for sizes."""
    found = _times(calibration, keys.own)
    if found is not None:
        return found
    found = _times(calibration, keys.alike)
    if found is not None:
        calibration.add(*_measurements(keys.own, found))
    return found


def keep_times(calibration: Calibration, keys: Keys, times: RegionTimes) -> None:
    """Keeps the measurement of a region."""
    for key in dict.fromkeys((keys.own, keys.alike)):
        calibration.add(*_measurements(key, times))


def _times(calibration: Calibration, key: str) -> RegionTimes | None:
    backend, host = (calibration.find(f"{REGIONS}/{key}/{place}") for place in ("backend", "host"))
    if backend is None or host is None:
        return None
    return RegionTimes(backend.source, "measured", backend.number, host.number)


def _measurements(key: str, times: RegionTimes) -> list[Measurement]:
    backend, host = times.backend_milliseconds, times.host_milliseconds
    assert backend is not None
    assert host is not None
    return [
        Measurement(f"{REGIONS}/{key}/backend", "ms", times.backend, backend),
        Measurement(f"{REGIONS}/{key}/host", "ms", "host", host),
    ]


def measured_times(region: FuncOp, compile_part: Compile) -> RegionTimes:
    """Measures the latency of a region on its backend and on the host, as the shortest of several
    runs.
    """
    alone, on_host = _alone(region), _alone(region)
    inline_regions(on_host, region_functions(on_host))
    programs = compile_part(alone), compile_part(on_host)
    backend, host = (1e3 * seconds for seconds in _shortest(*programs))
    return RegionTimes(str(region_compiler(region)), "measured", backend, host)


def _shortest(*programs: Program) -> list[float]:
    """Returns the shortest run of each program in seconds.

    Runs of the programs are interleaved, so that load affects all of them.
    """
    instances = [instance_of(program) for program in programs]
    generator = np.random.default_rng(0)
    inputs = [random_values(spec, generator) for spec in programs[0].inputs]
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


def random_values(spec: TensorInfo, generator: np.random.Generator) -> Array:
    """Returns random positive values, which cause no overflows or denormal results."""
    if spec.dtype.kind in "iub":
        return generator.integers(0, 2, spec.static_shape).astype(spec.dtype)
    return generator.uniform(0.5, 1.5, spec.static_shape).astype(spec.dtype)


def _alone(region: FuncOp) -> ModuleOp:
    """Returns a model that consists of one region; equal regions give equal models."""
    function = region.clone()
    for op in function.walk():
        arguments = (
            value for inner in op.regions for block in inner.blocks for value in block.args
        )
        for value in (*op.results, *arguments):
            value.name_hint = None
    function.properties["sym_name"] = StringAttr(_NAME)
    for of_model in (TIMES, WEIGHT_GROWTH):
        function.attributes.pop(of_model, None)
    type_ = region.function_type
    main = FuncOp("main", type_)
    block = main.body.block
    call = CallOp(_NAME, block.args, type_.outputs.data)
    block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([main, function])
