"""Parallel loops whose iterations OpenMP threads claim chunk by chunk.

With equal shares, all threads would wait for the slowest one, for example on a core with a busy
hyperthread. So a loop is cut into chunks. Each thread owns a range of chunks and claims these
first, in order, since its caches mostly hold their data from the previous loop. Then it claims
remaining chunks of other ranges. Chunk boundaries do not depend on the thread that runs a chunk, so
results are the same in every run.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from byoc_mlir.dialects.llvm_ext import LLVM

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

_DATA, _TOTAL, _COUNTERS, _WORDS = 1, 2, 8, 8 + 8 * _RANGES
"""Layout of a job in words of 8 bytes, after its body. Each range has a counter of claimed chunks,
in a cache line of its own."""

_FUNCTIONS = f"""
llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
llvm.func @omp_get_thread_num() -> i32
llvm.func @omp_get_num_threads() -> i32

llvm.func internal @{PARALLEL_FOR}(
    %body: !llvm.ptr, %data: !llvm.ptr, %total: i64, %threads: i32) {{
  %words = llvm.mlir.constant({_WORDS} : i64) : i64
  %bytes = llvm.mlir.constant({8 * (_WORDS - _COUNTERS)} : i64) : i64
  %nothing = llvm.mlir.constant(0 : i8) : i8
  %no_flags = llvm.mlir.constant(0 : i32) : i32
  %job = llvm.alloca %words x i64 {{alignment = 64 : i64}} : (i64) -> !llvm.ptr
  %to_data = llvm.getelementptr %job[{_DATA}] : (!llvm.ptr) -> !llvm.ptr, i64
  %to_total = llvm.getelementptr %job[{_TOTAL}] : (!llvm.ptr) -> !llvm.ptr, i64
  %counters = llvm.getelementptr %job[{_COUNTERS}] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %body, %job : !llvm.ptr, !llvm.ptr
  llvm.store %data, %to_data : !llvm.ptr, !llvm.ptr
  llvm.store %total, %to_total : i64, !llvm.ptr
  "llvm.intr.memset"(%counters, %nothing, %bytes) <{{isVolatile = false}}>
    : (!llvm.ptr, i8, i64) -> ()
  %run = llvm.mlir.addressof @{_RUN_CHUNKS} : !llvm.ptr
  llvm.call @GOMP_parallel(%run, %job, %threads, %no_flags)
    : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  llvm.return
}}

llvm.func internal @{_RUN_CHUNKS}(%job: !llvm.ptr) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %words_a_line = llvm.mlir.constant(8 : i64) : i64
  %most = llvm.mlir.constant({_RANGES} : i64) : i64
  %to_data = llvm.getelementptr %job[{_DATA}] : (!llvm.ptr) -> !llvm.ptr, i64
  %to_total = llvm.getelementptr %job[{_TOTAL}] : (!llvm.ptr) -> !llvm.ptr, i64
  %counters = llvm.getelementptr %job[{_COUNTERS}] : (!llvm.ptr) -> !llvm.ptr, i64
  %body = llvm.load %job : !llvm.ptr -> !llvm.ptr
  %data = llvm.load %to_data : !llvm.ptr -> !llvm.ptr
  %total = llvm.load %to_total : !llvm.ptr -> i64
  %number = llvm.call @omp_get_thread_num() : () -> i32
  %count = llvm.call @omp_get_num_threads() : () -> i32
  %thread = llvm.zext %number : i32 to i64
  %team = llvm.zext %count : i32 to i64
  %is_alone = llvm.icmp "eq" %team, %one : i64
  llvm.cond_br %is_alone, ^alone, ^shared
^alone:
  llvm.call %body(%data, %zero, %total) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
  llvm.return
^shared:
  %is_small = llvm.icmp "ult" %team, %most : i64
  %ranges = llvm.select %is_small, %team, %most : i1, i64
  %chunks_a_thread = llvm.mlir.constant({_CHUNKS} : i64) : i64
  %all = llvm.mul %team, %chunks_a_thread : i64
  %own = llvm.urem %thread, %ranges : i64
  llvm.br ^ranges(%zero : i64)
^ranges(%visited: i64):
  %is_left = llvm.icmp "ult" %visited, %ranges : i64
  llvm.cond_br %is_left, ^range, ^done
^range:
  %after = llvm.add %visited, %one : i64
  %further = llvm.add %own, %visited : i64
  %range = llvm.urem %further, %ranges : i64
  %next_range = llvm.add %range, %one : i64
  %first_product = llvm.mul %all, %range : i64
  %last_product = llvm.mul %all, %next_range : i64
  %first = llvm.udiv %first_product, %ranges : i64
  %last = llvm.udiv %last_product, %ranges : i64
  %line = llvm.mul %range, %words_a_line : i64
  %counter = llvm.getelementptr %counters[%line] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^claim
^claim:
  %claimed = "llvm.atomicrmw"(%counter, %one) <{{bin_op = 1 : i64, ordering = 2 : i64}}>
    : (!llvm.ptr, i64) -> i64
  %chunk = llvm.add %first, %claimed : i64
  %is_in_range = llvm.icmp "ult" %chunk, %last : i64
  llvm.cond_br %is_in_range, ^chunk, ^ranges(%after : i64)
^chunk:
  %next_chunk = llvm.add %chunk, %one : i64
  %begin_product = llvm.mul %total, %chunk : i64
  %end_product = llvm.mul %total, %next_chunk : i64
  %begin = llvm.udiv %begin_product, %all : i64
  %end = llvm.udiv %end_product, %all : i64
  %is_any = llvm.icmp "ult" %begin, %end : i64
  llvm.cond_br %is_any, ^run, ^claim
^run:
  llvm.call %body(%data, %begin, %end) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
  llvm.br ^claim
^done:
  llvm.return
}}
"""


def parallel_functions(known: Container[str] = ()) -> Sequence[llvm.FuncOp]:
    """Returns the functions of this module, and declarations of the OpenMP functions they use.

    Args:
        known: symbols that a module already has.
    """
    return [one.clone() for one in _parsed() if one.sym_name.data not in known]


@cache
def _parsed() -> Sequence[llvm.FuncOp]:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    module = Parser(context, _FUNCTIONS, "parallel.py").parse_module()
    return [op for op in module.ops if isinstance(op, llvm.FuncOp)]
