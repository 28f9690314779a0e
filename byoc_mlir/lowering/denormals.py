"""Native code that treats denormals as zero on all threads of a run (x86-64 only).

Two bits of the register MXCSR control this on each thread. OpenMP's threads live on between runs
and serve other models of the same Python thread. So a run sets the bits on all threads at its
beginning, and restores the caller's bits on all of them at its end. A thread that OpenMP starts
during a run inherits the bits of the thread that starts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from byoc_mlir.dialects.llvm_ext import LLVM

FLUSH = "byoc_flush_denormals"
"""Symbol of `i32 ()`, which sets the bits on all threads and returns this thread's former ones."""

RESTORE = "byoc_restore_denormals"
"""Symbol of `void (bits)`, which sets the bits on all threads to those that `FLUSH` returned."""

_SET = "byoc_set_denormals"
"""Symbol of `void (pointer to bits)`, which sets the bits on one thread."""

_BITS = 0x8040
"""Bits that turn denormal results (0x8000) and denormal operands (0x0040) into zero."""

_FUNCTIONS = f"""
llvm.func internal @{FLUSH}() -> i32 attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %bits = llvm.mlir.constant({_BITS} : i32) : i32
  %register = llvm.alloca %one x i32 {{alignment = 4 : i64}} : (i64) -> !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%register) : (!llvm.ptr) -> ()
  %before = llvm.load %register : !llvm.ptr -> i32
  %kept = llvm.and %before, %bits : i32
  llvm.call @{RESTORE}(%bits) : (i32) -> ()
  llvm.return %kept : i32
}}

llvm.func internal @{_SET}(%to_bits: !llvm.ptr) attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %others = llvm.mlir.constant({~_BITS & 0xFFFF} : i32) : i32
  %register = llvm.alloca %one x i32 {{alignment = 4 : i64}} : (i64) -> !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%register) : (!llvm.ptr) -> ()
  %before = llvm.load %register : !llvm.ptr -> i32
  %rest = llvm.and %before, %others : i32
  %bits = llvm.load %to_bits : !llvm.ptr -> i32
  %after = llvm.or %rest, %bits : i32
  llvm.store %after, %register : i32, !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%register) : (!llvm.ptr) -> ()
  llvm.return
}}

llvm.func internal @{RESTORE}(%bits: i32) attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %to_bits = llvm.alloca %one x i32 {{alignment = 4 : i64}} : (i64) -> !llvm.ptr
  llvm.store %bits, %to_bits : i32, !llvm.ptr
  CALL
  llvm.return
}}
"""

_ON_THIS_THREAD = f"llvm.call @{_SET}(%to_bits) : (!llvm.ptr) -> ()"

_ON_ALL_THREADS = f"""
  %zero = llvm.mlir.constant(0 : i32) : i32
  %set = llvm.mlir.addressof @{_SET} : !llvm.ptr
  llvm.call @GOMP_parallel(%set, %to_bits, %zero, %zero) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
"""

_OPENMP = "llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)\n"


def denormal_functions(*, threads: bool) -> Sequence[llvm.FuncOp]:
    """Returns the functions `FLUSH` and `RESTORE`, and their helpers.

    Args:
        threads: true if there is an OpenMP runtime.
    """
    return [function.clone() for function in _parsed(threads)]


@cache
def _parsed(threads: bool) -> Sequence[llvm.FuncOp]:
    call = _ON_ALL_THREADS if threads else _ON_THIS_THREAD
    text = (_OPENMP if threads else "") + _FUNCTIONS.replace("CALL", call)
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    module = Parser(context, text, "denormals.py").parse_module()
    return [op for op in module.ops if isinstance(op, llvm.FuncOp)]
