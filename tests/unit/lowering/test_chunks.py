"""Loops whose chunks threads claim: each iteration runs once, even if a thread is slow."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jit_helpers import OPENMP_FUNCTIONS
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.libraries import find_openmp, load_library, resolve_symbol

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_MAIN = """
llvm.func @main(%body: !llvm.ptr, %data: !llvm.ptr, %total: i64, %threads: i32) {
  llvm.call @byoc_parallel_for(%body, %data, %total, %threads)
    : (!llvm.ptr, !llvm.ptr, i64, i32) -> ()
  llvm.return
}
llvm.func @byoc_parallel_for(!llvm.ptr, !llvm.ptr, i64, i32)
"""

ParallelFor = Callable[[Callable[[int, int], None], int, int], None]
"""Function that calls a body on ranges that cover `[0, total)`, on a number of threads."""


@pytest.fixture(scope="module")
def parallel_for() -> Iterator[ParallelFor]:
    module: ModuleOp = Parser(make_context(), _MAIN).parse_module()
    assert module.body.block.last_op is not None
    module.body.block.last_op.detach()
    ModuleBuilder(module).define_parallel_for()
    module.verify()
    path = find_openmp()
    assert path is not None
    library = load_library(path)
    symbols = {name: resolve_symbol(name, [library]) for name in OPENMP_FUNCTIONS}
    with NativeModule([emit_object(module)], ["main"], symbols) as native:
        main = ctypes.CFUNCTYPE(None, _BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)(
            native.address("main")
        )

        def run(body: Callable[[int, int], None], total: int, threads: int) -> None:
            main(_BODY(lambda data, begin, end: body(begin, end)), 77, total, threads)

        yield run


def ranges(parallel_for: ParallelFor, total: int, threads: int) -> list[tuple[int, int]]:
    """Returns the ranges with which the body is called."""
    found: list[tuple[int, int]] = []
    parallel_for(lambda begin, end: found.append((begin, end)), total, threads)
    return sorted(found)


@settings(max_examples=60)
@given(total=st.integers(0, 2000), threads=st.integers(1, 12))
@example(total=0, threads=1)
@example(total=1, threads=2)
@example(total=2**40, threads=2)
@example(total=97, threads=9)
def test_ranges_make_up_the_loop_and_are_the_same_every_time(
    parallel_for: ParallelFor, total: int, threads: int
) -> None:
    found = ranges(parallel_for, total, threads)
    bounds = [bound for one in found for bound in one]
    joined = [bound for bound, times in Counter(bounds).items() if times % 2]
    assert all(begin < end for begin, end in found) or total == 0
    assert joined == ([0, total] if total else [])
    assert bounds == sorted(bounds)
    assert found == ranges(parallel_for, total, threads)


def test_a_loop_on_one_thread_is_one_chunk(parallel_for: ParallelFor) -> None:
    assert ranges(parallel_for, 1000, 1) == [(0, 1000)]


def test_chunks_are_small_enough_to_share(parallel_for: ParallelFor) -> None:
    assert len(ranges(parallel_for, 1000, 2)) == 16
    assert max(end - begin for begin, end in ranges(parallel_for, 1000, 3)) == 42


def test_a_slow_thread_does_less(parallel_for: ParallelFor) -> None:
    """Checks a thread that stays in its first chunk until the other has done three quarters of the
    loop.
    """
    caller, done, most_is_done = threading.get_ident(), Counter[bool](), threading.Event()

    def body(begin: int, end: int) -> None:
        is_slow = threading.get_ident() == caller
        if is_slow:
            most_is_done.wait(60)
        done[is_slow] += end - begin
        if done[False] >= 1200:
            most_is_done.set()

    parallel_for(body, 1600, 2)
    assert done.total() == 1600
    assert done[True] <= 400
