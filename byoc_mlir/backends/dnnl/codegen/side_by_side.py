"""Calls that run at the same time, each on one OpenMP thread."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.steps import mark_step
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder

_NO_FLAGS = 0


class NumberedCall(Protocol):
    """Generator of call number `n`, which returns the call's status."""

    def __call__(
        self, function: FunctionBuilder, state: SSAValue, context: SSAValue, n: int, /
    ) -> SSAValue: ...


def run_side_by_side(
    function: FunctionBuilder,
    name: str,
    values: tuple[SSAValue, SSAValue],
    count: int,
    call: NumberedCall,
    step: OpDetail,
) -> SSAValue:
    """Runs `count` calls on as many threads, or on fewer if the team is smaller.

    Args:
        function: the function that makes the calls.
        name: symbol of the function that each thread runs.
        values: values that the calls use: the state and the context.
        count: number of calls.
        call: writes one of the calls.
        step: row of a profile for all calls together.

    Returns:
        The status of all calls, joined.
    """
    data = function.stack_slots(len(values) + count)
    for position, value in enumerate(values):
        function.store(value, function.slot(data, position))
    _add_thread(function, name, len(values), count, call)
    function.do(
        "GOMP_parallel",
        function.address(name),
        data,
        function.integer(count, i32),
        function.integer(_NO_FLAGS, i32),
    )
    together = function.block.last_op
    assert together is not None
    mark_step(together, step.nodes, step.implementation)
    status = function.integer(0, i32)
    for n in range(count):
        result = function.word(data, len(values) + n, i32)
        status = function.binary(llvm.OrOp, status, result)
    return status


def _add_thread(
    outer: FunctionBuilder, name: str, values: int, count: int, call: NumberedCall
) -> None:
    """Adds `void (data)`, which runs the calls of one thread and stores their statuses after the
    values.
    """
    function = outer.module.function(name, (POINTER,), result=VOID, internal=True)
    (data,) = function.parameters
    state, context = (function.pointer(data, position) for position in range(values))
    thread, team = function.call("omp_get_thread_num"), function.call("omp_get_num_threads")

    def run(n: int) -> None:
        function.store(call(function, state, context, n), function.slot(data, values + n))

    for n in range(count):
        turn = function.binary(llvm.SRemOp, function.integer(n, i32), team)
        function.when(function.compare("eq", turn, thread), partial(run, n))
    function.finish()
