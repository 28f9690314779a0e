"""The pass `share-dnnl-threads`: ops that run on one thread, or at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.dialect import ExecutedOp, ViewOp, layout_of
from byoc_mlir.backends.dnnl.dialect.recurrent import RecurrentOp
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.thread_plan import shared_steps
from byoc_mlir.onednn.engine import openmp_threads

_ONE = IntegerAttr(1, i64)


@dataclass(frozen=True)
class ShareDnnlThreads(RegionPass):
    """Chooses the ops that run on one thread: short ops and recurrent layers.

    Short ops run on one thread unless the other threads must stay awake for adjacent ops
    (`kernels/thread_plan.py`). Independent recurrent layers may run at the same time.

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
        executed = [op for op in region.body.block.ops if isinstance(op, ExecutedOp)]
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


def _independent_layers(func: FuncOp) -> list[list[RecurrentOp]]:
    """Returns groups of recurrent layers; adjacent layers that are independent form one group."""
    layers: list[list[RecurrentOp]] = []
    before: Operation | None = None
    for op in func.body.block.ops:
        if isinstance(op, RecurrentOp):
            if isinstance(before, RecurrentOp) and len(layers[-1]) == 1 and _is_apart(before, op):
                layers[-1].append(op)
            else:
                layers.append([op])
        before = op
    return layers


def _is_apart(one: Operation, other: Operation) -> bool:
    return all(_root(value).owner is not one for value in other.operands)


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def _is_serial(layers: Sequence[Operation], costs: Costs, threads: int) -> bool:
    """True if concurrent layers, each on one thread, are faster than one layer after the other on
    all.
    """

    def times(count: int) -> list[float]:
        with openmp_threads(count):
            return [costs.op(op, layout_of) for op in layers]

    return sum(times(threads)) > ASSUMED.waiting_margin * max(times(1))
