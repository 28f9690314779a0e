"""Parallel loops whose iterations OpenMP threads claim chunk by chunk.

With equal shares, all threads would wait for the slowest one, for example on a core with a busy
hyperthread. So a loop is cut into chunks. Each thread owns a range of chunks and claims these
first, in order, since its caches mostly hold their data from the previous loop. Then it claims
remaining chunks of other ranges. Chunk boundaries do not depend on the thread that runs a chunk, so
results are the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import VOID
from byoc_mlir.kernels.ops import POINTER
from byoc_mlir.kernels.team import add_keep_cores

if TYPE_CHECKING:
    from byoc_mlir.kernels.module_builder import ModuleBuilder

PARALLEL_FOR = "byoc_parallel_for"
"""Function `void (body, data, total, threads)`: calls `body(data, begin, end)` on ranges that make
up `[0, total)`, on `threads` threads; 0 stands for all threads of the run."""

_RUN_CHUNKS = "byoc_run_chunks"
"""Function `void (job)`: the work of one thread."""

_RANGES = 8
"""Maximum number of ranges; more threads share them."""

_CHUNKS = 8
"""Chunks for each thread. With eight, the other threads wait for at most an eighth of a thread's
share, half of it on average."""

_DATA, _TOTAL, _COUNTERS = 1, 2, 8
"""Layout of a job in words of 8 bytes, after its body. Each range has a counter of claimed chunks,
in a cache line of its own."""

_LINE = 8
"""Words of a cache line."""

_NO_FLAGS = 0


def add_parallel_for(module: ModuleBuilder) -> str:
    """Adds `PARALLEL_FOR` and what it calls, unless the module has it. Returns its symbol."""
    if module.has(PARALLEL_FOR):
        return PARALLEL_FOR
    keep_cores = add_keep_cores(module)
    _add_run_chunks(module)
    function = module.function(
        PARALLEL_FOR, (POINTER, POINTER, i64, i32), result=VOID, internal=True
    )
    body, data, total, threads = function.parameters
    job = function.stack_slots(_COUNTERS + _LINE * _RANGES, alignment=8 * _LINE)
    for position, value in ((0, body), (_DATA, data), (_TOTAL, total)):
        function.store(value, function.slot(job, position))
    for number in range(_RANGES):
        function.store(function.integer(0), function.slot(job, _COUNTERS + _LINE * number))
    function.do(keep_cores)
    flags = function.integer(_NO_FLAGS, i32)
    function.do("GOMP_parallel", function.address(_RUN_CHUNKS), job, threads, flags)
    function.finish()
    return PARALLEL_FOR


def _add_run_chunks(module: ModuleBuilder) -> None:
    function = module.function(_RUN_CHUNKS, (POINTER,), result=VOID, internal=True)
    (job,) = function.parameters
    body, data = function.pointer(job, 0), function.pointer(job, _DATA)
    total = function.word(job, _TOTAL)
    thread = function.sign_extend(function.call("omp_get_thread_num"))
    team = function.sign_extend(function.call("omp_get_num_threads"))
    is_alone = function.compare("eq", team, function.integer(1))

    def run_chunk(chunk: SSAValue, chunks: SSAValue) -> None:
        begin, end = function.share(total, chunk, chunks)
        is_any = function.compare("slt", begin, end)
        function.when(is_any, lambda: function.do_at(body, data, begin, end))

    def shared() -> None:
        ranges = function.least(team, function.integer(_RANGES))
        chunks = function.multiply(team, _CHUNKS)

        def claim_all(visited: SSAValue) -> None:
            own = function.add(thread, visited)
            number = function.binary(llvm.SRemOp, own, ranges)
            first, last = function.share(chunks, number, ranges)
            line = function.slot(job, function.multiply(number, _LINE))
            counter = function.slot(line, _COUNTERS)

            def claim(_: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue]]:
                chunk = function.add(first, function.atomic_add(counter, 1))
                is_in_range = function.compare("slt", chunk, last)
                function.when(is_in_range, lambda: run_chunk(chunk, chunks))
                return is_in_range, ()

            function.repeat((), claim)

        function.loop(ranges, claim_all)

    function.branch(
        is_alone, lambda: function.do_at(body, data, function.integer(0), total), shared
    )
    function.finish()
