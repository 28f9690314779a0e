"""The pass `profile-steps`: measures the time of each step of a run, and the work of other
threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i32,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import ARENA_BYTES, CONTEXT_OFFSET, CONTEXT_SLOTS, STEP, STEPS
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.ops import offset
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.lowering.symbols import is_declaration

NOW = "byoc_profile_now"
"""Symbol of `i64 ()`, which returns the clock in nanoseconds."""
OTHERS = "byoc_profile_others"
"""Global variable: nanoseconds for which all threads were busy in parallel calls, minus the wall
time of these calls."""

_OPENMP, _PARALLEL, _WORKER = "GOMP_parallel", "byoc_profile_parallel", "byoc_profile_worker"
_CALLED = SymbolRefAttr(_OPENMP)

START, TICK = "byoc_profile_start", "byoc_profile_tick"

_CLOCK, _MONOTONIC, _NANOSECONDS = "clock_gettime", 1, 1_000_000_000


@dataclass(frozen=True)
class _Step:
    """Timed call in a function of a region, or of the host."""

    call: llvm.CallOp
    region: str
    context: SSAValue
    offset: int
    """Number of the context slot at which `context` points."""


class ProfileSteps(ModulePass):
    """Accumulates in slots of the context, for each step of a run, its nanoseconds and the time
    that other threads were busy. Runs on the linked module in the `llvm` dialect.

    Steps are the calls with the attribute `byoc.step`, and those in @main and its control flow that
    have an ONNX node.

    ```mlir
    llvm.func @main(%state: !llvm.ptr, %context: !llvm.ptr, …) -> i32 {
      llvm.call @relu_0(%x, %y) : (!llvm.ptr, !llvm.ptr) -> () loc("relu")
    // becomes, where the context has 8 slots,
    llvm.func @main(%state: !llvm.ptr, %context: !llvm.ptr, …) -> i32 {
      %clock = llvm.getelementptr %context[8] : (!llvm.ptr) -> !llvm.ptr, i64
      llvm.call @byoc_profile_start(%clock) : (!llvm.ptr) -> ()
      llvm.call @relu_0(%x, %y) : (!llvm.ptr, !llvm.ptr) -> () loc("relu")
      %sum = llvm.getelementptr %context[9] : (!llvm.ptr) -> !llvm.ptr, i64
      %others = llvm.getelementptr %context[10] : (!llvm.ptr) -> !llvm.ptr, i64
      llvm.call @byoc_profile_tick(%clock, %sum, %others) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    ```

    and the module gets `byoc.steps`. The first slot holds the time at which the previous step
    ended. Each step has two slots: for its time, and for the time of other threads. Other threads
    are timed where built-in kernels call OpenMP's runtime; threads inside of a library are not
    measured.
    """

    name = "profile-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [
            function
            for function in op.ops
            if isinstance(function, llvm.FuncOp) and not is_declaration(function)
        ]
        main = next((one for one in functions if one.sym_name.data == "main"), None)
        if main is None or CONTEXT_SLOTS not in op.attributes:
            raise PassFailedException(
                "profile-steps: there is no @main with slots; run add-entry-points before"
            )
        base = int_attribute(op, CONTEXT_SLOTS)
        steps = [step for function in functions for step in _steps(function)]
        for number, step in enumerate(steps, start=1):
            _time(step, base, number, len(steps))
        _start(main, base)
        op.attributes[STEPS] = ArrayAttr(map(_description, steps))
        op.attributes[CONTEXT_SLOTS] = IntegerAttr(base + 1 + 2 * len(steps), i64)
        builder = ModuleBuilder(op)
        _define_clock(builder)
        _time_threads(builder)


def _steps(function: llvm.FuncOp) -> Iterator[_Step]:
    is_region = CONTEXT_OFFSET in function.attributes
    if not is_region and ARENA_BYTES not in function.attributes:
        return  # neither a region nor @main and the functions of its control flow
    first = int_attribute(function, CONTEXT_OFFSET) if is_region else 0
    region = function.sym_name.data if is_region else ""
    for op in function.walk():
        if not isinstance(op, llvm.CallOp):
            continue
        if STEP in op.attributes or (not is_region and node_names(op)):
            yield _Step(op, region, function.body.blocks[0].args[1], first)


def _description(step: _Step) -> DictionaryAttr:
    said = step.call.attributes.pop(STEP, None)
    callee = step.call.callee.root_reference.data if step.call.callee is not None else ""
    known = said.data if isinstance(said, DictionaryAttr) else {}
    return DictionaryAttr(
        {
            "nodes": ArrayAttr(map(StringAttr, node_names(step.call))),
            "region": StringAttr(step.region),
            "implementation": StringAttr(callee),
            "layout": StringAttr(""),
            **known,
        }
    )


def _time(step: _Step, base: int, number: int, count: int) -> None:
    slots = [
        offset(step.context, base + slot - step.offset, i64) for slot in (0, number, number + count)
    ]
    tick = llvm.CallOp(TICK, *(slot.result for slot in slots))
    Rewriter.insert_op([*slots, tick], InsertPoint.after(step.call))


def _start(main: llvm.FuncOp, base: int) -> None:
    entry = main.body.blocks[0]
    clock = offset(entry.args[1], base, i64)
    start = llvm.CallOp(START, clock.result)
    Rewriter.insert_op([clock, start], InsertPoint.at_start(entry))


def _define_clock(builder: ModuleBuilder) -> None:
    """Defines the functions that read the clock with `clock_gettime` of the C library."""
    now = builder.function(NOW, (), result=i64, internal=True)
    time = now.stack_slots(2)
    now.call(_CLOCK, now.integer(_MONOTONIC, i32), time)
    seconds = now.multiply(now.word(time, 0), _NANOSECONDS)
    now.finish(now.add(seconds, now.word(time, 1)))
    start = builder.function(START, (POINTER,), result=VOID, internal=True)
    start.store(start.call(NOW, result=i64), start.parameters[0])
    start.store(start.integer(0), start.address(OTHERS))
    start.finish()
    tick = builder.function(TICK, (POINTER,) * 3, result=VOID, internal=True)
    clock, sum_, others = tick.parameters
    read = tick.call(NOW, result=i64)
    passed = tick.subtract(read, tick.load(clock))
    tick.store(tick.add(tick.load(sum_), passed), sum_)
    tick.store(tick.add(tick.load(others), tick.load(tick.address(OTHERS))), others)
    tick.store(tick.integer(0), tick.address(OTHERS))
    tick.store(read, clock)
    tick.finish()


def _time_threads(builder: ModuleBuilder) -> None:
    """Replaces calls of OpenMP's runtime by calls of a function that also measures the time of all
    threads.
    """
    module = builder.module
    calls = [op for op in module.walk() if isinstance(op, llvm.CallOp) and op.callee == _CALLED]
    for call in calls:
        call.properties["callee"] = SymbolRefAttr(_PARALLEL)
    if calls:
        _define_parallel(builder)
    builder.adopt(llvm.GlobalOp(i64, OTHERS, "internal", value=IntegerAttr(0, i64)))


def _define_parallel(builder: ModuleBuilder) -> None:
    """Defines the call of OpenMP's runtime that also measures the time of all threads."""
    function = builder.function(_PARALLEL, (POINTER, POINTER, i32, i32), result=VOID, internal=True)
    work, data, threads, flags = function.parameters
    job = function.stack_array([work, data, function.integer(0)])
    worker, begin = function.address(_WORKER), function.call(NOW, result=i64)
    function.do(_OPENMP, worker, job, threads, flags)
    passed = function.subtract(function.call(NOW, result=i64), begin)
    more = function.subtract(function.word(job, 2), passed)
    function.atomic_add(function.address(OTHERS), more)
    function.finish()
    function = builder.function(_WORKER, (POINTER,), result=VOID, internal=True)
    (job,) = function.parameters
    begin = function.call(NOW, result=i64)
    function.do_at(function.pointer(job, 0), function.pointer(job, 1))
    passed = function.subtract(function.call(NOW, result=i64), begin)
    function.atomic_add(function.slot(job, 2), passed)
    function.finish()
