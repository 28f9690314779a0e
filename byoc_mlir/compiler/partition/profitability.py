"""Regions that do not pay, by estimate or by measurement, go back to the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from byoc_mlir.backends import Backend, Target
from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.rates import current_rates
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.program import Array, Program, TensorSpec
from byoc_mlir.transforms.inline_partitions import inline_partition
from byoc_mlir.transforms.prune_regions import estimated_work_of, prune_regions

MEASURED_SECONDS = 0.1
MEASURED_RUNS = 10

Compile = Callable[[ModuleOp], Program]
"""Compiles a partitioned module."""

Judge = Callable[[FuncOp], str | None]
"""Why a region goes back to the host; `None` keeps it."""


def prune_unprofitable(
    module: ModuleOp, options: CompileOptions, backends: Sequence[Backend], compile_part: Compile
) -> None:
    """Sends regions back to the host that are of no use there; their ops say why.

    Args:
        module: the partitioned module.
        options: `prune` says how to tell; only regions of its `targets` are judged.
        backends: those that the module is partitioned for.
        compile_part: compiles a partitioned module, to measure it.
    """
    targets = {Target.parse(target).name for target in options.targets}
    judge = _judge(module, options, backends, compile_part)
    prune_regions(
        module, lambda region: judge(region) if region_compiler(region) in targets else None
    )


def _judge(
    module: ModuleOp, options: CompileOptions, backends: Sequence[Backend], compile_part: Compile
) -> Judge:
    if options.prune == "estimated":
        return _too_little_work
    if options.prune == "measured" or _work(module) < ASSUMED.small_model:
        return _slower_than_host(options, compile_part)
    return _known_to_be_slower(backends)


def profitable(
    module: ModuleOp, options: CompileOptions, backends: Sequence[Backend]
) -> tuple[str, ...]:
    """The targets that are believed to run regions of a partitioned module faster than the host;
    nothing is measured, and of a model of little work none is.
    """
    if _work(module) < ASSUMED.small_model:
        return ()
    keeps = _known_to_be_slower(backends)
    targets = {Target.parse(target).name for target in options.targets}
    found = (
        region_compiler(op)
        for op in module.body.block.ops
        if isinstance(op, FuncOp) and region_compiler(op) in targets and keeps(op) is None
    )
    return tuple(sorted({str(name) for name in found}))


def _known_to_be_slower(backends: Sequence[Backend]) -> Judge:
    by_name = {backend.name: backend for backend in backends}
    return lambda region: by_name[str(region_compiler(region))].faster_on_host(region)


def _work(module: ModuleOp) -> int:
    return sum(estimated_work_of(op) for op in module.body.block.ops if isinstance(op, FuncOp))


def _too_little_work(region: FuncOp) -> str | None:
    work = estimated_work_of(region)
    if work >= ASSUMED.region_work:
        return None
    return f"the region does about {work} operations, less than {ASSUMED.region_work:.0f}"


@dataclass
class Verdicts:
    """Why regions go back to the host, `None` for those that stay: a part of the rates."""

    reasons: dict[str, str | None]
    """By the hash of all that was measured."""

    @staticmethod
    def of_json(document: Any) -> Verdicts:
        """Those that a file has.

        Raises:
            TypeError, AttributeError: it is something else.
        """
        found: dict[str, str | None] = {}
        for key, reason in ({} if document is None else document).items():
            if reason is not None and not isinstance(reason, str):
                raise TypeError(f"{key} is {reason!r}, accepted are a text and null")
            found[str(key)] = reason
        return Verdicts(found)

    def as_json(self) -> dict[str, str | None]:
        """All of them."""
        return dict(self.reasons)


def _slower_than_host(options: CompileOptions, compile_part: Compile) -> Judge:
    """Measures regions both ways, equal ones once; what may not be measured is estimated."""
    verdicts = current_rates().part("verdicts", Verdicts.of_json).reasons

    def judge(region: FuncOp) -> str | None:
        module = _alone(region)
        key = digest(
            *(str(module), options.targets, options.threads, options.denormals), *options.disable
        )
        if key not in verdicts:
            if not current_rates().may_measure:
                return _too_little_work(region)
            verdicts[key] = _measured(module, compile_part)
        return verdicts[key]

    return judge


def _measured(module: ModuleOp, compile_part: Compile) -> str | None:
    on_host = module.clone()
    region = next(op for op in on_host.walk() if isinstance(op, FuncOp) and region_compiler(op))
    compiler = region_compiler(region)
    inline_partition(on_host, region)
    backend_seconds, host_seconds = _fastest(compile_part(module), compile_part(on_host))
    if backend_seconds <= host_seconds:
        return None
    return (
        f"measured {host_seconds * 1e3:.3f} ms on the host,"
        f" {backend_seconds * 1e3:.3f} ms on {compiler}"
    )


def _alone(region: FuncOp) -> ModuleOp:
    """A model that is one region; equal ones for equal regions."""
    function = region.clone()
    for op in function.walk():
        arguments = (
            value for inner in op.regions for block in inner.blocks for value in block.args
        )
        for value in (*op.results, *arguments):
            value.name_hint = None
    function.properties["sym_name"] = StringAttr("region")
    type_ = region.function_type
    main = FuncOp("main", type_)
    block = main.body.block
    call = CallOp("region", block.args, type_.outputs.data)
    block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([main, function])


def _fastest(*programs: Program) -> list[float]:
    """The shortest run of each, in turns, so that what disturbs one disturbs all."""
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
        for index, instance in enumerate(instances):
            start = time.perf_counter()
            instance.run(inputs)
            shortest[index] = min(shortest[index], time.perf_counter() - start)
        runs += 1
    return shortest


def _random(spec: TensorSpec) -> np.ndarray[Any, np.dtype[Any]]:
    """Positive numbers: no op is slower than usual for overflows or denormal results."""
    generator = np.random.default_rng(0)
    if spec.dtype.kind in "iub":
        return generator.integers(0, 2, spec.shape).astype(spec.dtype)
    return generator.uniform(0.5, 1.5, spec.shape).astype(spec.dtype)
