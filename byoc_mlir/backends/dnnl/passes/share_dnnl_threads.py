"""Which primitives run on one thread, and which of those at the same time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.api import openmp_threads
from byoc_mlir.backends.dnnl.costs import Costs
from byoc_mlir.backends.dnnl.dialect import ActivationOp, ViewOp, layout_of
from byoc_mlir.backends.dnnl.dialect.recurrent import RecurrentOp
from byoc_mlir.backends.dnnl.passes.split_dnnl_activations import milliseconds
from byoc_mlir.backends.dnnl.plan import Plan
from byoc_mlir.backends.dnnl.primitives import primitive

_SHORT_MILLISECONDS = 0.015
"""Starting another thread and waiting for it takes a fifth of that, more when it has to wake."""

_WORTH_WAITING = 0.7
"""A layer on several threads waits for all of them at each step: where a neighbour is busy, much
longer than when it was measured."""


def share_threads(func: FuncOp, costs: Costs, times: dict[Operation, float], threads: int) -> Plan:
    """The plan for a region in its final layouts.

    Args:
        times: what was measured.
        threads: the OpenMP threads that will run the region.
    """
    if threads == 1:
        return Plan(times, ())
    with openmp_threads(1):
        serial = {op for op in func.body.block.ops if _takes(op, costs) < _SHORT_MILLISECONDS}
    groups: dict[Operation, Operation] = {}
    for pair in _independent_layers(func):
        if _is_serial(pair, costs, threads):
            serial |= set(pair)
            groups |= dict.fromkeys(pair, pair[0]) if len(pair) > 1 else {}
    return Plan(times, serial, groups)


def _takes(op: Operation, costs: Costs) -> float:
    if isinstance(op, ActivationOp):
        return milliseconds(op)
    return math.inf if primitive(op) is None else costs.op(op, layout_of)


def _independent_layers(func: FuncOp) -> list[list[Operation]]:
    """Recurrent layers, those together of which neither reads the other's results."""
    layers: list[list[Operation]] = []
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
    """Whether one thread for each layer is faster than all threads for one after the other."""

    def times(count: int) -> list[float]:
        with openmp_threads(count):
            return [costs.op(op, layout_of) for op in layers]

    return sum(times(threads)) > _WORTH_WAITING * max(times(1))
