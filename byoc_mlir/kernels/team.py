"""Placement of a run's OpenMP threads, each on a core of its own.

A thread that waits for a moment sleeps. When another one wakes it, Linux may put it on the core of
the one that wakes it, above all in a virtual machine, whose resting cores do not count as idle. The
two take turns there from then on, although another core is free. So if a run has as many threads
as the process has cores, each thread of the team except the caller is bound to one core, none of
them to the caller's. The caller is not bound, since threads that it starts would inherit that;
before each parallel loop it returns to its core if it has been moved.

Teams of several callers that run at the same time are better off together on a core each. So from
the first time that two runs of a process overlap, its teams are left to the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import RUNS_SYMBOL
from byoc_mlir.kernels.builder import VOID, FunctionBuilder
from byoc_mlir.kernels.ops import EXTERNAL, POINTER

if TYPE_CHECKING:
    from byoc_mlir.kernels.module_builder import ModuleBuilder

BEGIN_RUN, END_RUN = "byoc_begin_run", "byoc_end_run"
"""Functions `run ()` and `void (run)` that a run calls first and last, on the same thread."""

KEEP_CORES = "byoc_keep_cores"
"""Function `void ()` that the caller of a run calls before each parallel loop: places the team, or
returns to the caller's core."""

_RUNS = "byoc_runs_of_program"
"""Variable: the number of runs that have begun, then the latest of them."""

_GATHER, _PLACE_THREAD = "byoc_gather_team", "byoc_place_thread"
"""Functions `void (run, core, here)` and `void (run)`: the work of the caller, if its core is
another one than `here`, and that of each thread when the team is placed."""

_BIND = "byoc_bind_thread"
"""Function `void (core, cores)`: binds the thread that calls it to one core, or to all."""

_CORE, _CORES = 1, 2
"""Positions in a run, in words of 8 bytes, after its thread: the core of that thread, and the set
of the process's cores."""

_NEW, _FREE, _LEAVING = 0, -1, -2
"""Numbers in the place of a core's, which counts from 1: the team is not placed yet, is left to the
scheduler, or has to be freed."""

_SET_WORDS = 16
_SET_BYTES = 8 * _SET_WORDS
"""Size of a `cpu_set_t`."""

_RUN_WORDS, _MOST_RUNS = _CORES + _SET_WORDS, 8


def add_run_functions(module: ModuleBuilder) -> None:
    """Adds `BEGIN_RUN`, `END_RUN` and what they call."""
    add_keep_cores(module)
    module.adopt(llvm.GlobalOp(llvm.LLVMArrayType(2, i64), RUNS_SYMBOL, EXTERNAL))
    _add_begin_run(module)
    _add_end_run(module)


def add_keep_cores(module: ModuleBuilder) -> str:
    """Adds `KEEP_CORES` and what it calls, unless the module has it. Returns its symbol."""
    if module.has(KEEP_CORES):
        return KEEP_CORES
    module.variable(_RUNS, 8 * (1 + _MOST_RUNS * _RUN_WORDS))
    _add_bind(module)
    _add_place_thread(module)
    _add_gather(module)
    function = module.function(KEEP_CORES, (), result=VOID, internal=True, is_inlined=False)
    run = _own_run(function)

    def look() -> None:
        core = function.word(run, _CORE)
        here = function.add(function.sign_extend(function.call("sched_getcpu")), 1)
        is_elsewhere = function.compare("ne", core, here)
        is_kept = function.compare("ne", core, function.integer(_FREE))
        is_moved = function.binary(llvm.AndOp, is_elsewhere, is_kept)
        function.when(is_moved, lambda: function.do(_GATHER, run, core, here))

    function.when(function.compare("ne", run, function.null()), look)
    function.finish()
    return KEEP_CORES


def _own_run(function: FunctionBuilder) -> SSAValue:
    """Returns the run of the calling thread, or null."""
    runs = function.slot(function.address(_RUNS), 1)
    thread = function.call("pthread_self", result=i64)

    def look(number: SSAValue, found: Sequence[SSAValue]) -> Sequence[SSAValue]:
        run = function.slot(runs, function.multiply(number, _RUN_WORDS))
        is_own = function.compare("eq", function.word(run, 0), thread)
        return (function.select(is_own, run, found[0]),)

    (run,) = function.fold(function.integer(_MOST_RUNS), [function.null()], look)
    return run


def _add_begin_run(module: ModuleBuilder) -> None:
    function = module.function(BEGIN_RUN, (), result=POINTER, internal=True)
    under_way, begun = function.address(RUNS_SYMBOL), function.address(_RUNS)
    overlaps = function.slot(under_way, 1)
    others, count = function.atomic_add(under_way, 1), function.atomic_add(begun, 1)
    _, number = function.divmod(count, function.integer(_MOST_RUNS))
    run = function.slot(function.slot(begun, 1), function.multiply(number, _RUN_WORDS))
    known = function.word(overlaps, 0)
    is_alone = function.compare("eq", others, function.integer(0))
    state = function.select(is_alone, function.integer(_NEW), function.integer(_LEAVING))
    did_overlap = function.compare("ne", known, function.integer(0))
    state = function.select(did_overlap, function.integer(_FREE), state)
    function.store(function.binary(llvm.OrOp, known, others), overlaps)
    function.store(state, function.slot(run, _CORE))
    function.store(function.call("pthread_self", result=i64), run)
    function.finish(run)


def _add_end_run(module: ModuleBuilder) -> None:
    function = module.function(END_RUN, (POINTER,), result=VOID, internal=True)
    (run,) = function.parameters
    under_way, none = function.address(RUNS_SYMBOL), function.integer(0)
    function.atomic_add(under_way, -1)
    did_overlap = function.compare("ne", function.word(under_way, 1), none)
    is_placed = function.compare("sgt", function.word(run, _CORE), none)
    is_leaving = function.binary(llvm.AndOp, did_overlap, is_placed)
    leaving = function.integer(_LEAVING)
    function.when(is_leaving, lambda: function.do(_GATHER, run, leaving, none))
    function.store(none, run)
    function.finish()


def _add_gather(module: ModuleBuilder) -> None:
    function = module.cold(_GATHER, (POINTER, i64, i64))
    run, core, here = function.parameters
    cores, bytes_ = function.slot(run, _CORES), function.integer(_SET_BYTES)
    free = function.integer(_FREE)
    zero, one = function.integer(0, i32), function.integer(1, i32)

    def return_home() -> None:
        function.do(_BIND, core, cores)
        function.do(_BIND, free, cores)

    def place() -> None:
        is_new = function.compare("eq", core, function.integer(_NEW))
        function.store(function.select(is_new, here, free), function.slot(run, _CORE))
        each = function.address(_PLACE_THREAD)
        function.do("GOMP_parallel", each, run, zero, zero)

    def place_if_one_each(threads: SSAValue) -> None:
        function.call("sched_getaffinity", zero, bytes_, cores)
        count = function.call("__sched_cpucount", bytes_, cores)
        function.when(function.compare("eq", count, threads), place)

    def place_team() -> None:
        function.store(free, function.slot(run, _CORE))
        threads = function.call("omp_get_max_threads")
        are_many = function.compare("ne", threads, one)
        function.when(are_many, lambda: place_if_one_each(threads))

    is_moved = function.compare("sgt", core, function.integer(0))
    function.branch(is_moved, return_home, place_team)
    function.finish()


def _add_place_thread(module: ModuleBuilder) -> None:
    function = module.cold(_PLACE_THREAD, (POINTER,))
    (run,) = function.parameters
    home, cores = function.word(run, _CORE), function.slot(run, _CORES)
    number = function.sign_extend(function.call("omp_get_thread_num"))
    none = function.integer(0)

    def pass_core(values: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue]]:
        index, passed = values
        number_of_word, position = _place_in_set(function, index)
        shifted = function.binary(llvm.LShrOp, function.word(cores, number_of_word), position)
        bit = function.binary(llvm.AndOp, shifted, function.integer(1))
        core = function.add(index, 1)
        is_home = function.compare("eq", core, home)
        passed = function.add(passed, function.select(is_home, none, bit))
        is_left = function.compare("slt", passed, number)
        is_core = function.compare("slt", core, function.integer(8 * _SET_BYTES))
        return function.binary(llvm.AndOp, is_left, is_core), (core, passed)

    def own_core() -> Sequence[SSAValue]:
        core, _ = function.repeat([none, none], pass_core)
        return (core,)

    def bind() -> None:
        is_free = function.compare("slt", home, none)
        (core,) = function.branch(is_free, lambda: [home], own_core, i64)
        function.do(_BIND, core, cores)

    function.when(function.compare("ne", number, none), bind)
    function.finish()


def _place_in_set(function: FunctionBuilder, index: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the number of the word of a set that has the core, and the bit there."""
    word = function.binary(llvm.LShrOp, index, function.integer(6))
    return word, function.binary(llvm.AndOp, index, function.integer(63))


def _add_bind(module: ModuleBuilder) -> None:
    function = module.cold(_BIND, (i64, POINTER))
    core, cores = function.parameters
    one, now = function.stack_slots(_SET_WORDS), function.stack_slots(_SET_WORDS)
    bytes_, caller = function.integer(_SET_BYTES), function.integer(0, i32)

    def of_one() -> Sequence[SSAValue]:
        words = function.integer(_SET_WORDS)
        function.loop(words, lambda n: function.store(function.integer(0), function.slot(one, n)))
        word, position = _place_in_set(function, function.subtract(core, 1))
        bit = function.binary(llvm.ShlOp, function.integer(1), position)
        function.store(bit, function.slot(one, word))
        return (one,)

    is_one = function.compare("sgt", core, function.integer(0))
    (wanted,) = function.branch(is_one, of_one, lambda: [cores], POINTER)
    function.call("sched_getaffinity", caller, bytes_, now)

    differs = function.failed(function.call("memcmp", wanted, now, bytes_))
    function.when(differs, lambda: function.call("sched_setaffinity", caller, bytes_, wanted))
    function.finish()
