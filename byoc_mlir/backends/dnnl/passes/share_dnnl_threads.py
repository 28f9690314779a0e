"""The pass `share-dnnl-threads`: ops that run on one thread, or at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.onednn.engine import openmp_threads

_ONE = IntegerAttr(1, i64)


@dataclass(frozen=True)
class ShareDnnlThreads(RegionPass):
    """Chooses the ops that run on one thread: short ops and recurrent layers.

    Short ops run on one thread unless the other threads must stay awake for adjacent ops
    (`chosen_threads` below). Independent recurrent layers may run at the same time.

    Options:
        threads: the OpenMP threads that will run the region.

    ```mlir
    %0:3 = dnnl.lstm %x, %v, %r, %b : …
    %1:3 = dnnl.lstm %x, %v, %r, %b {direction = "reverse"} : …
    ```
    becomes
    ```mlir
    %0:3 = dnnl.lstm %x, %v, %r, %b {threads = 1} : …
    %1:3 = dnnl.lstm %x, %v, %r, %b {threads = 1, concurrent = true, direction = "reverse"} : …
    ```
    """

    name = "share-dnnl-threads"
    threads: int = 1

    def change(self, region: FuncOp) -> None:
        if self.threads == 1:
            return
        costs = Costs()
        executed = [op for op in region.body.block.ops if isinstance(op, dnnl.ExecutedOp)]
        with openmp_threads(1):
            shared = shared_steps([costs.decided(op) for op in executed], self.threads)
        for op, is_shared in zip(executed, shared, strict=True):
            if not is_shared:
                op.threads = _ONE
        for layers in _independent_layers(region):
            if _is_serial(layers, costs, self.threads):
                for layer in layers:
                    layer.threads = _ONE
                    layer.concurrent = BoolAttr.from_bool(layer is not layers[0])


def _independent_layers(func: FuncOp) -> list[list[dnnl.RecurrentOp]]:
    """Returns groups of recurrent layers; adjacent layers that are independent form one group."""
    layers: list[list[dnnl.RecurrentOp]] = []
    before: Operation | None = None
    for op in func.body.block.ops:
        if isinstance(op, dnnl.RecurrentOp):
            if (
                isinstance(before, dnnl.RecurrentOp)
                and len(layers[-1]) == 1
                and _is_apart(before, op)
            ):
                layers[-1].append(op)
            else:
                layers.append([op])
        before = op
    return layers


def _is_apart(one: Operation, other: Operation) -> bool:
    return all(_root(value).owner is not one for value in other.operands)


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, dnnl.ViewOp):
        value = value.owner.source
    return value


def _is_serial(layers: Sequence[Operation], costs: Costs, threads: int) -> bool:
    """True if concurrent layers, each on one thread, are faster than one layer after the other on
    all.
    """

    def times(count: int) -> list[float]:
        with openmp_threads(count):
            return [costs.op(op, dnnl.layout_of) for op in layers]

    return sum(times(threads)) > ASSUMED.waiting_margin * max(times(1))


@dataclass(frozen=True)
class _PartialPlan:
    """Fastest plan of the first steps, if threads share the last of these."""

    milliseconds: float
    before: int | None
    """Previous shared step; `None` if there is none."""


def shared_steps(milliseconds: Sequence[float], threads: int) -> list[bool]:
    """Decides for each step if threads share it, for the least total time.

    The time of a shared step is its time on one thread divided by the number of threads, plus the
    time to start them. Threads sleep before the first step, and when they are idle for longer than
    they spin; then the step also waits until they wake. A step that is faster on one thread may be
    shared to keep the other threads awake.

    Args:
        milliseconds: time of each step on one thread.
        threads: number of threads that share a step.
    """
    begins = [0.0, *accumulate(milliseconds)]  # time before each step, all on one thread
    ways: list[_PartialPlan] = []
    sleeping = _PartialPlan(0.0, None)  # best plan so far, less the steps since
    for step, alone in enumerate(milliseconds):
        found = _PartialPlan(
            sleeping.milliseconds + begins[step] + ASSUMED.thread_wake, sleeping.before
        )
        for before in reversed(range(step)):
            gap = begins[step] - begins[before + 1]
            if gap > ASSUMED.threads_spin:
                break
            found = min(found, _PartialPlan(ways[before].milliseconds + gap, before), key=_time)
        shared = alone / threads + ASSUMED.thread_start
        ways.append(_PartialPlan(found.milliseconds + shared, found.before))
        since = _PartialPlan(ways[step].milliseconds - begins[step + 1], step)
        sleeping = min(sleeping, since, key=_time)
    return _marked(ways, sleeping.before)


def _time(way: _PartialPlan) -> float:
    return way.milliseconds


def _marked(ways: Sequence[_PartialPlan], last: int | None) -> list[bool]:
    """Marks the shared steps of the plan whose last shared step is `last`."""
    found = [False] * len(ways)
    while last is not None:
        found[last] = True
        last = ways[last].before
    return found
