"""How long the other threads of a run are busy, for profiles."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Builtin, IntegerAttr, ModuleOp, SymbolRefAttr, i64
from xdsl.parser import Parser

from byoc_mlir.dialects.llvm_ext import LLVM

NOW = "byoc_profile_now"
"""`i64 ()`: the clock in nanoseconds."""
OTHERS = "byoc_profile_others"
"""A global: nanoseconds that other threads were busy, more than the run's own waited for them."""

_OPENMP, _PARALLEL, _WORKER = "GOMP_parallel", "byoc_profile_parallel", "byoc_profile_worker"
_CALLED = SymbolRefAttr(_OPENMP)

_FUNCTIONS = f"""
llvm.func @{NOW}() -> i64
llvm.func @{_OPENMP}(!llvm.ptr, !llvm.ptr, i32, i32)

llvm.func internal @{_PARALLEL}(
    %work: !llvm.ptr, %data: !llvm.ptr, %threads: i32, %flags: i32) {{
  %words = llvm.mlir.constant(3 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %job = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %to_data = llvm.getelementptr %job[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %to_busy = llvm.getelementptr %job[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %work, %job : !llvm.ptr, !llvm.ptr
  llvm.store %data, %to_data : !llvm.ptr, !llvm.ptr
  llvm.store %zero, %to_busy : i64, !llvm.ptr
  %worker = llvm.mlir.addressof @{_WORKER} : !llvm.ptr
  %begin = llvm.call @{NOW}() : () -> i64
  llvm.call @{_OPENMP}(%worker, %job, %threads, %flags)
    : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  %end = llvm.call @{NOW}() : () -> i64
  %busy = llvm.load %to_busy : !llvm.ptr -> i64
  %passed = llvm.sub %end, %begin : i64
  %more = llvm.sub %busy, %passed : i64
  %others = llvm.mlir.addressof @{OTHERS} : !llvm.ptr
  %before = "llvm.atomicrmw"(%others, %more) <{{bin_op = 1 : i64, ordering = 2 : i64}}>
    : (!llvm.ptr, i64) -> i64
  llvm.return
}}

llvm.func internal @{_WORKER}(%job: !llvm.ptr) {{
  %to_data = llvm.getelementptr %job[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %to_busy = llvm.getelementptr %job[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %work = llvm.load %job : !llvm.ptr -> !llvm.ptr
  %data = llvm.load %to_data : !llvm.ptr -> !llvm.ptr
  %begin = llvm.call @{NOW}() : () -> i64
  llvm.call %work(%data) : !llvm.ptr, (!llvm.ptr) -> ()
  %end = llvm.call @{NOW}() : () -> i64
  %passed = llvm.sub %end, %begin : i64
  %before = "llvm.atomicrmw"(%to_busy, %passed) <{{bin_op = 1 : i64, ordering = 2 : i64}}>
    : (!llvm.ptr, i64) -> i64
  llvm.return
}}
"""


def time_threads(module: ModuleOp) -> ModuleOp:
    """Replaces calls of OpenMP's runtime by calls of a function that times all threads, too.

    Returns a module of the global `OTHERS` and, where there are such calls, what they need.
    """
    others = llvm.GlobalOp(i64, OTHERS, "internal", value=IntegerAttr(0, i64))
    calls = [op for op in module.walk() if isinstance(op, llvm.CallOp) and op.callee == _CALLED]
    if not calls:
        return ModuleOp([others])
    for call in calls:
        call.properties["callee"] = SymbolRefAttr(_PARALLEL)
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    functions = Parser(context, _FUNCTIONS, "profiled_threads.py").parse_module()
    functions.body.block.add_op(others)
    return functions
