"""Measurement of a profile: the run with the median time, of several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.profile import Profile, ProfileRow
from byoc_mlir.runtime.program import Step
from byoc_mlir.runtime.report import Report

CALL = "call from Python"
"""Name of the row for the time outside of all steps."""
ENQUEUED = "enqueued"
"""Implementation of a device's region: its time is that of the call, which does not wait."""
REGION = "call of the region"
"""Name of the row for a region without steps, or for the time outside of its steps."""

_Timed: TypeAlias = tuple[Step, float, float]
"""Step with its seconds, and the seconds of its other threads."""


@dataclass(frozen=True)
class TimedPart:
    """Times of one program of a model in a run."""

    report: Report
    steps: Sequence[Step]
    seconds: Sequence[float]
    """Seconds of each step."""
    others: Sequence[float]
    """Seconds for which other threads were busy in each step, if built-in kernels started them."""
    threads: int
    home: str = "host"
    """Placement of the steps that are in no region."""


@dataclass(frozen=True)
class TimedRun:
    """Run of a model with its times."""

    outputs: Mapping[str, Any]
    seconds: float
    """Seconds of the run, measured by the caller."""
    parts: tuple[TimedPart, ...]
    """Times of the programs of the model, in order."""


def profile_of(timed: Callable[[], TimedRun], runs: int) -> Profile:
    """Measures several runs of a model, after one uncounted run.

    Raises:
        ExecutionError: the model was not compiled for profiles, or a native call failed.
    """
    if not any(part.steps for part in timed().parts):
        raise ExecutionError("no step is timed; compile the model with profile=True")
    found: list[tuple[float, tuple[TimedPart, ...]]] = []
    for _ in range(runs):
        run = timed()
        found.append((run.seconds, run.parts))
    total, parts = sorted(found, key=lambda one: one[0])[runs // 2]
    rows = [row for part in parts for row in _rows(part)]
    outside = max(0.0, total - sum(spent for part in parts for spent in part.seconds))
    threads = max(1, *(part.threads for part in parts))
    waited = outside * (threads - 1) / threads
    call = ProfileRow((), (), "", "", CALL, milliseconds=outside * 1e3)
    rows.append(replace(call, idle_milliseconds=waited * 1e3))
    return Profile(tuple(rows), total * 1e3, runs, threads)


def _rows(part: TimedPart) -> Iterator[ProfileRow]:
    timed = zip(part.steps, part.seconds, part.others, strict=True)
    steps = [one for one in timed if one[1] > 0]
    return (
        replace(_row(part, step, spent), idle_milliseconds=_idle(part, step, spent, others) * 1e3)
        for step, spent, others in _with_work_once(steps)
    )


def _idle(part: TimedPart, step: Step, spent: float, others: float) -> float:
    """Returns the mean waiting time of the threads. The threads of an external library count as
    busy.
    """
    is_library = bool(step.region) and not others
    if is_library or part.threads < 2:
        return 0.0
    return max(0.0, spent * (part.threads - 1) - others) / part.threads


def _with_work_once(steps: Sequence[_Timed]) -> Iterator[_Timed]:
    """Yields the steps; of several steps for the same nodes, only the slowest keeps their work. The
    work of a device's steps is their own.
    """
    of_node: dict[str, list[_Timed]] = {}
    for one in steps:
        for node in () if one[0].device else one[0].nodes:
            of_node.setdefault(node, []).append(one)
    for step, spent, busy in steps:
        rivals = of_node[step.nodes[0]] if step.nodes and not step.device else []
        if any(_has_its_work(other, seconds, step, spent) for other, seconds, _ in rivals):
            yield replace(step, multiplications=0, bytes=0), spent, busy
        else:
            yield step, spent, busy


def _has_its_work(other: Step, seconds: float, step: Step, spent: float) -> bool:
    if other.region != step.region or other is step:
        return False
    mine, theirs = set(step.nodes), set(other.nodes)
    return mine < theirs or (mine == theirs and seconds > spent)


def _row(part: TimedPart, step: Step, seconds: float) -> ProfileRow:
    report = part.report
    regions = {row.region: row.placement for row in report if row.region}
    if step.device:
        return _row_of_device(report, step, seconds, regions.get(step.implementation))
    if step.implementation in regions:  # its steps have rows of their own, or it has none
        return _row_of_region(step, seconds, regions[step.implementation])
    nodes = set(step.nodes)
    rows = [row for row in report if row.node in nodes]
    precisions = dict.fromkeys(row.precision.partition(":")[0] for row in rows if row.precision)
    return ProfileRow(
        nodes=step.nodes,
        ops=tuple(dict.fromkeys(row.op_type for row in rows)),
        backend=regions.get(step.region, part.home),
        region=step.region,
        implementation=step.implementation,
        layout=step.layout,
        precision=", ".join(precisions),
        milliseconds=seconds * 1e3,
        multiplications=step.multiplications,
        bytes=step.bytes,
    )


def _row_of_region(step: Step, seconds: float, backend: str) -> ProfileRow:
    """Returns the row of a region's call: its whole time, or its time outside of its steps."""
    return ProfileRow((), (), backend, step.implementation, REGION, milliseconds=seconds * 1e3)


def _row_of_device(report: Report, step: Step, seconds: float, backend: str | None) -> ProfileRow:
    """Returns the row of a copy or a wait, or of a region on a device, with its backend."""
    nodes = set(step.nodes)
    return ProfileRow(
        step.nodes,
        tuple(dict.fromkeys(row.op_type for row in report if row.node in nodes)),
        backend or "host",
        step.implementation if backend else "",
        ENQUEUED if backend else step.implementation,
        milliseconds=seconds * 1e3,
        bytes=step.bytes,
        device=step.device,
    )
