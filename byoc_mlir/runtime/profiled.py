"""Making the profile of a loaded program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.profile import Profile, ProfileRow
from byoc_mlir.runtime.program import Array, Step
from byoc_mlir.runtime.report import Report

CALL = "call from Python"
"""The row of the time outside of all steps."""
REGION = "call of the region"
"""The row of a region that tells no steps, or of what is outside of them."""

_Timed: TypeAlias = tuple[Step, float]
"""A step and its seconds."""


def profiled(instance: Instance, inputs: Sequence[Array], runs: int) -> Profile:
    """Runs a program on checked inputs and says what took how long.

    Raises:
        ExecutionError: it was not compiled for that, or a native call failed.
    """
    program = instance.program
    if not program.steps:
        raise ExecutionError("no step is timed; compile the model with profile=True")
    instance.run(inputs)
    total, seconds = instance.profile(inputs, runs)
    steps = [(step, spent) for step, spent in zip(program.steps, seconds, strict=True) if spent > 0]
    rows = [_row(program.report, step, spent) for step, spent in _with_work_once(steps)]
    outside = max(0.0, total - sum(spent for _, spent in steps))
    rows.append(ProfileRow((), (), "", "", CALL, milliseconds=outside * 1e3))
    return Profile(tuple(rows), total * 1e3, runs, program.threads)


def _with_work_once(steps: Sequence[_Timed]) -> Iterator[_Timed]:
    """The steps; of several that serve the same nodes, the slowest alone has their work."""
    of_node: dict[str, list[_Timed]] = {}
    for step, spent in steps:
        for node in step.nodes:
            of_node.setdefault(node, []).append((step, spent))
    for step, spent in steps:
        others = of_node[step.nodes[0]] if step.nodes else []
        if any(_has_its_work(other, seconds, step, spent) for other, seconds in others):
            yield replace(step, multiplications=0, bytes=0), spent
        else:
            yield step, spent


def _has_its_work(other: Step, seconds: float, step: Step, spent: float) -> bool:
    if other.region != step.region or other is step:
        return False
    mine, theirs = set(step.nodes), set(other.nodes)
    return mine < theirs or (mine == theirs and seconds > spent)


def _row(report: Report, step: Step, seconds: float) -> ProfileRow:
    regions = {row.region: row.placement for row in report if row.region}
    if step.implementation in regions:  # its own steps are told apart, or it has none
        return _row_of_region(step, seconds, regions[step.implementation])
    nodes = set(step.nodes)
    rows = [row for row in report if row.node in nodes]
    precisions = dict.fromkeys(row.precision.partition(":")[0] for row in rows if row.precision)
    return ProfileRow(
        nodes=step.nodes,
        ops=tuple(dict.fromkeys(row.op_type for row in rows)),
        backend=regions.get(step.region, "host"),
        region=step.region,
        implementation=step.implementation,
        layout=step.layout,
        precision=", ".join(precisions),
        milliseconds=seconds * 1e3,
        multiplications=step.multiplications,
        bytes=step.bytes,
    )


def _row_of_region(step: Step, seconds: float, backend: str) -> ProfileRow:
    """The call of a region: all of it, or what is outside of its steps."""
    return ProfileRow((), (), backend, step.implementation, REGION, milliseconds=seconds * 1e3)
