"""Function that runs a region: executions, one after the other or concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.dnnl.codegen.executions import (
    Group,
    Threads,
    groups,
    moves_stack_pointer_in,
    step_of,
)
from byoc_mlir.backends.dnnl.codegen.own_code import Generated
from byoc_mlir.backends.dnnl.codegen.places import Outside
from byoc_mlir.backends.dnnl.codegen.program import Execution
from byoc_mlir.backends.dnnl.codegen.region_code import RegionFunctions
from byoc_mlir.backends.dnnl.codegen.signals import (
    SET_WORDS,
    add_hold_signals,
    add_hold_signals_of_team,
    add_release_signals,
)
from byoc_mlir.backends.dnnl.codegen.slot_layout import STREAM_SLOT
from byoc_mlir.backends.dnnl.codegen.special_values import add_any_special
from byoc_mlir.backends.steps import mark_step
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.team import add_keep_cores


class RunFunction:
    """Writer of `R`, which points the memory objects at inputs and outputs, then executes."""

    def __init__(self, code: RegionFunctions, inputs: int, outputs: int):
        self._code, self._inputs = code, inputs
        self._function = code.module.function(code.symbol, (POINTER,) * (2 + inputs + outputs))
        self._state, self._context, *self._tensors = self._function.parameters

    def write(self) -> None:
        """Writes the function."""
        layout, program, inputs = self._code.layout, self._code.program, self._inputs
        function, context, tensors = self._function, self._context, self._tensors
        for number, memory in enumerate(program.memories.items):
            if isinstance(memory.place, Outside):
                held = function.pointer(context, layout.memories + number)
                tensor = tensors[memory.place.index]
                if memory.place.offset:
                    tensor = function.offset(tensor, function.integer(memory.place.offset))
                function.check(function.call("dnnl_memory_set_data_handle", held, tensor))
        status = function.integer(0, i32)
        special = self._special(tensors[:inputs])
        in_order = groups(program.executions, layout.arguments)
        held = self._hold_signals(in_order)
        threads = Threads(function)
        for group in in_order:
            threads.use(group[0][0].threads)
            if _starts_threads(group):
                function.do(add_keep_cores(self._code.shared))
            result = self._run_group(group, special)
            status = function.binary(llvm.OrOp, status, result)
        threads.use(None)
        waited = function.call("dnnl_stream_wait", function.pointer(context, STREAM_SLOT))
        if held is not None:
            function.do(add_release_signals(self._code.shared), held)
        function.finish(function.binary(llvm.OrOp, status, waited))

    def _hold_signals(self, in_order: Sequence[Group]) -> SSAValue | None:
        """Masks signals and returns the address of the old mask; `None` if no execution requires
        it.
        """
        function, shared = self._function, self._code.shared
        moving = [group for group in in_order if moves_stack_pointer_in(group)]
        if not moving:
            return None
        before = function.stack_slots(SET_WORDS)
        function.do(add_hold_signals(shared), before)
        if any(len(group) > 1 or group[0][0].threads != 1 for group in moving):
            function.do(add_hold_signals_of_team(shared))
        return before

    def _special(self, inputs: Sequence[SSAValue]) -> SSAValue | None:
        """Returns a flag that is set if an input or weight has a NaN or an infinity.

        `None` if no execution is affected by them.
        """
        function, program = self._function, self._code.program
        if not any(execution.nan_safe for execution in program.executions):
            return None
        if not all(np.isfinite(weight.data).all() for weight in program.weights.values()):
            return function.compare("eq", function.integer(0), function.integer(0))
        found = function.integer(0, i32)
        for tensor, floats in zip(inputs, program.input_floats, strict=True):
            if not floats.count:
                continue
            look = add_any_special(self._code.shared, floats.element)
            one = function.call(look, tensor, function.integer(floats.count))
            found = function.binary(llvm.OrOp, found, one)
        return function.failed(found)

    def _run_group(self, group: Group, special: SSAValue | None) -> SSAValue:
        """Runs one execution, or several at the same time, and returns the status."""
        function, state, context = self._function, self._state, self._context
        if len(group) > 1:

            def member(
                inner: FunctionBuilder, state: SSAValue, context: SSAValue, n: int
            ) -> SSAValue:
                return self._execute(inner, state, context, *group[n])

            name = self._code.name(f"beside_{group[0][1]}")
            return run_side_by_side(
                function, name, (state, context), len(group), member, step_of(group)
            )
        ((execution, first),) = group
        if special is None or not execution.nan_safe:
            return self._execute(function, state, context, execution, first)

        def carefully() -> SSAValue:
            status, slot = function.integer(0, i32), first
            for before, part in pairwise(execution.parts):
                slot += 2 * len(before.arguments)
                result = self._execute(function, state, context, part, slot)
                status = function.binary(llvm.OrOp, status, result)
            return status

        (status,) = function.branch(
            special,
            lambda: [carefully()],
            lambda: [self._execute(function, state, context, execution, first)],
            i32,
        )
        return status

    def _execute(
        self,
        function: FunctionBuilder,
        state: SSAValue,
        context: SSAValue,
        execution: Execution,
        first: int,
    ) -> SSAValue:
        """Calls one execution whose arguments start at slot `first` of the context; returns the
        status.
        """
        pairs = function.slot(context, first)
        if isinstance(execution.code, Generated):
            table = self._code.table(f"table_{first}", [execution.code.words])
            kernel = execution.code.add(self._code.shared)
            status = function.call(kernel, pairs, function.address(table))
        else:
            primitive = function.pointer(state, self._code.layout.primitives + execution.code)
            stream = function.pointer(context, STREAM_SLOT)
            count = function.integer(len(execution.arguments), i32)
            status = function.call("dnnl_primitive_execute", primitive, stream, count, pairs)
        detail = execution.detail
        if detail is not None and isinstance(status.owner, Operation):
            mark_step(status.owner, detail.nodes, detail.implementation, detail.note)
        return status


def _starts_threads(group: Group) -> bool:
    """True if oneDNN or this code starts a parallel loop; generated code does so by itself."""
    (execution, _), *others = group
    return bool(others) or (execution.threads != 1 and not isinstance(execution.code, Generated))


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
