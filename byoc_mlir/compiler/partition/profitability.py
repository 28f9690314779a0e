"""Pruning: regions that do not pay on their backend, by estimate or measurement, go back to the
host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends import Backend, CodegenContext, Target
from byoc_mlir.calibration import current_calibration, measuring
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.next_targets import hand_on
from byoc_mlir.compiler.partition.region_times import (
    REGIONS,
    Compile,
    Keys,
    find_times,
    keep_times,
    measured_times,
)
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.transforms.blocks import is_constant, is_terminator
from byoc_mlir.transforms.inline_partitions import inline_partitions
from byoc_mlir.transforms.prune_regions import computations, estimated_work_of, prune_regions
from byoc_mlir.transforms.region_times import set_times

MEASURING_SECONDS = 0.5
"""Maximum CPU seconds to spend on measuring the regions of a model."""

_MOST_MEASURED_OPS = 10
"""Maximum number of ops of a measured region; compiling larger ones twice takes too long."""

_LEAST_MEASURED_SHARE = 0.1
"""Minimum share of the time of all regions for which a region is measured."""

Judge = Callable[[FuncOp], str | None]
"""Function that returns why a region goes back to the host, or `None` to keep it."""


def prune_unprofitable(
    context: Context,
    module: ModuleOp,
    options: CompileOptions,
    backends: Sequence[Backend],
    compile_part: Compile,
) -> None:
    """Removes regions from backends where they do not pay, and records the reason on their ops.

    The next targets may take the ops; their regions are judged as well.

    Args:
        context: xDSL context for passes.
        module: the partitioned module. Regions and ops whose times were compared get `byoc.times`.
        options: `prune` selects the criterion; only regions of `targets` are judged.
        backends: the backends of the partitioning.
        compile_part: function that compiles a partitioned module, for measurements.
    """
    judge = _judge(module, options, backends, compile_part)
    for position, target in enumerate(options.targets):
        name, later = Target.parse(target).name, options.targets[position + 1 :]
        pruned = prune_regions(
            module,
            lambda region, name=name, judge=judge: (
                judge(region) if region_compiler(region) == name else None
            ),
            partial(hand_on, context=context, targets=later) if later else inline_partitions,
        )
        if pruned and later:
            judge = _judge(module, options, backends, compile_part)


def _judge(
    module: ModuleOp, options: CompileOptions, backends: Sequence[Backend], compile_part: Compile
) -> Judge:
    judge = _judge_of_regions(module, options, backends, compile_part)
    if options.prune == "estimated" or all(one.memory_space == HOST_SPACE for one in backends):
        return judge
    from byoc_mlir.compiler.partition.device_decisions import device_decisions

    decisions = device_decisions(module, backends, CodegenContext(options.threads))
    return lambda region: decisions[region] if region in decisions else judge(region)


def _judge_of_regions(
    module: ModuleOp, options: CompileOptions, backends: Sequence[Backend], compile_part: Compile
) -> Judge:
    """Returns the judge of regions that share the host's memory."""
    if options.prune == "estimated":
        return _too_little_work
    if options.prune == "measured":
        return _MeasuringJudge(options, compile_part)
    targets = _names(options)
    regions = [op for op in module.walk() if isinstance(op, FuncOp)]
    on_host = {backend.name for backend in backends if backend.memory_space == HOST_SPACE}
    judged = [region for region in regions if region_compiler(region) in targets & on_host]
    return _EstimatingJudge(judged, options, backends, compile_part)


def _names(options: CompileOptions) -> frozenset[str]:
    """Returns the names of the targets, without their options."""
    return frozenset(Target.parse(target).name for target in options.targets)


def _too_little_work(region: FuncOp) -> str | None:
    work = estimated_work_of(region)
    if work >= ASSUMED.region_work:
        return None
    return f"the region does about {work} operations, less than {ASSUMED.region_work:.0f}"


@dataclass
class _MeasuringJudge:
    """Judge that measures all regions, equal ones once; it estimates regions that it must not
    measure.
    """

    options: CompileOptions
    compile_part: Compile

    def __call__(self, region: FuncOp) -> str | None:
        keys = Keys.of(region, self.options)
        times = find_times(current_calibration(), keys)
        with measuring():
            if times is None and current_calibration().may_measure:
                times = _measured(region, keys, self.compile_part)
        return _too_little_work(region) if times is None else _decide(region, times)


class _EstimatingJudge:
    """Judge that compares estimates of a region's latency on its backend and on the host.

    If the compilation may measure, it measures small but important regions whose estimates are
    close. Of all others with close estimates or without one, regions of little work go back.

    Args:
        regions: all regions to judge.
    """

    def __init__(
        self,
        regions: Sequence[FuncOp],
        options: CompileOptions,
        backends: Sequence[Backend],
        compile_part: Compile,
    ):
        self._backends = {backend.name: backend for backend in backends}
        self._compile_part = compile_part
        self._options = options
        self._keys: dict[FuncOp, Keys] = {}
        context = CodegenContext(options.threads)
        self._times = {region: self._known_times(region, context) for region in regions}
        self._seconds = 0.0

    def _known_times(self, region: FuncOp, context: CodegenContext) -> RegionTimes:
        """Returns the stored measurement of a region or of an equal one, or else an estimate."""
        from byoc_mlir.compiler.partition.host_costs import estimated_times

        backend = self._backends[str(region_compiler(region))]
        return self._measured_before(region) or estimated_times(region, backend, context)

    def _measured_before(self, region: FuncOp) -> RegionTimes | None:
        known = current_calibration()
        if not known.group(REGIONS) or _size(region) > _MOST_MEASURED_OPS:
            return None
        return find_times(known, self._keys_of(region))

    def _keys_of(self, region: FuncOp) -> Keys:
        """Returns the keys of a region.

        They are computed on demand and once, because the region's text is long.
        """
        if region not in self._keys:
            self._keys[region] = Keys.of(region, self._options)
        return self._keys[region]

    def __call__(self, region: FuncOp) -> str | None:
        times = self._times[region]
        if times.obtained == "measured" or _are_apart(times):
            return _decide(region, times)
        found = self._measured_before(region)
        if found is None and self._is_worth_measuring(region):
            start = time.process_time()
            found = _measured(region, self._keys_of(region), self._compile_part)
            self._seconds += time.process_time() - start
        if found is not None:
            return _decide(region, found)
        set_times(region, times)
        return self._backends[times.backend].faster_on_host(region) or _too_little_work(region)

    def _is_worth_measuring(self, region: FuncOp) -> bool:
        milliseconds = self._times[region].backend_milliseconds
        if milliseconds is None or not current_calibration().may_measure:
            return False
        total = sum(one.backend_milliseconds or 0.0 for one in self._times.values())
        matters = milliseconds >= _LEAST_MEASURED_SHARE * total
        is_small = _size(region) <= _MOST_MEASURED_OPS
        return is_small and matters and self._seconds < MEASURING_SECONDS


def _size(region: FuncOp) -> int:
    """Returns the number of ops that compute something."""
    return sum(not (is_constant(op) or is_terminator(op)) for op in computations(region))


def _measured(region: FuncOp, keys: Keys, compile_part: Compile) -> RegionTimes:
    times = measured_times(region, compile_part)
    keep_times(current_calibration(), keys, times)
    return times


def _are_apart(times: RegionTimes) -> bool:
    """True if the estimates differ by more than their error."""
    backend, host = times.backend_milliseconds, times.host_milliseconds
    if backend is None or host is None:
        return False
    return min(backend, host) < ASSUMED.place_margin * max(backend, host)


def _decide(region: FuncOp, times: RegionTimes) -> str | None:
    """Records the times that decide, and returns why the region goes back, or `None`."""
    set_times(region, times)
    backend, host = times.backend_milliseconds, times.host_milliseconds
    assert backend is not None
    assert host is not None
    if backend <= host:
        return None
    return f"{times.obtained} {host:.3f} ms on the host, {backend:.3f} ms on {times.backend}"
