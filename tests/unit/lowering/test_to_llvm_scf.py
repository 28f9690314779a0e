"""Structured control flow and parallel loops, executed."""

from __future__ import annotations

import ctypes
import ctypes.util
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from jit_helpers import OPENMP_FUNCTIONS, Native, lowered, optimised_assembly
from xdsl.dialects import func
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import MAY_ALIAS
from byoc_mlir.dialects import make_context
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget
from byoc_mlir.lowering.to_llvm.outline_parallel import OutlineParallel


def _libgomp() -> dict[str, int]:
    path = ctypes.util.find_library("gomp")
    if path is None:
        pytest.skip("libgomp is not installed")
    library = ctypes.CDLL(path)
    addresses = {
        name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        for name in OPENMP_FUNCTIONS
    }
    return {name: address for name, address in addresses.items() if address}


def _run(text: str, threads: bool, *args: np.ndarray | float) -> None:
    symbols = _libgomp() if threads else {}
    Native(text, OutlineParallel(threads=threads), symbols=symbols).call("f", *args)


def _outlined(text: str, threads: bool = False) -> list[func.FuncOp]:
    context = make_context()
    module = Parser(context, text).parse_module()
    OutlineParallel(threads=threads).apply(context, module)
    module.verify()
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp)][1:]


def test_loops_and_branches_with_values() -> None:
    text = """
func.func @f(%out: memref<3xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k0 = arith.constant 0 : i64
  %k1 = arith.constant 1 : i64
  %k3 = arith.constant 3 : i64
  %a, %b = scf.for %i = %c0 to %n step %c2 iter_args(%x = %k0, %y = %k1) -> (i64, i64) {
    %odd = arith.cmpi sgt, %x, %k3 : i64
    %p, %q = scf.if %odd -> (i64, i64) {
      %s = arith.subi %x, %k3 : i64
      scf.yield %s, %y : i64, i64
    } else {
      %s = arith.addi %x, %y : i64
      scf.yield %s, %k3 : i64, i64
    }
    scf.yield %q, %p : i64, i64
  }
  memref.store %a, %out[%c0] : memref<3xi64>
  memref.store %b, %out[%c1] : memref<3xi64>
  %w = scf.while (%v = %n) : (index) -> index {
    %more = arith.cmpi sgt, %v, %c2 : index
    scf.condition(%more) %v : index
  } do {
  ^bb0(%v: index):
    %h = arith.divui %v, %c2 : index
    scf.yield %h : index
  }
  %w64 = arith.index_cast %w : index to i64
  %positive = arith.cmpi sgt, %n, %c0 : index
  scf.if %positive {
    memref.store %w64, %out[%c2] : memref<3xi64>
  }
  func.return
}"""
    native = Native(text)
    for count in (0, 1, 7, 30):
        out = np.full(3, -1, np.int64)
        native.call("f", out, count)
        a, b = 0, 1
        for _ in range(0, count, 2):
            p, q = (a - 3, b) if a > 3 else (a + b, 3)
            a, b = q, p
        halved = count
        while halved > 2:
            halved //= 2
        assert out.tolist() == [a, b, halved if count > 0 else -1]


_NEST = """
func.func @f(%x: memref<5x7x9xf32>, %y: memref<5x7x9xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %k = arith.constant 2.0 : f32
  "scf.parallel"(%c0, %c1, %c0, %c5, %c7, %n, %c1, %c2, %c1)
      <{operandSegmentSizes = array<i32: 3, 3, 3, 0>}> ({
  ^bb0(%i: index, %j: index, %l: index):
    %0 = memref.load %x[%i, %j, %l] : memref<5x7x9xf32>
    %1 = arith.mulf %0, %k : f32
    memref.store %1, %y[%i, %j, %l] : memref<5x7x9xf32>
    scf.reduce
  }) : (index, index, index, index, index, index, index, index, index) -> ()
  func.return
}"""


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_parallel_nests_visit_every_point_once(threads: bool, count: int) -> None:
    x = np.random.default_rng(7).normal(size=(5, 7, 9)).astype(np.float32)
    y = np.zeros_like(x)
    _run(_NEST, threads, x, y, count)
    wanted = np.zeros_like(x)
    wanted[:, 1:7:2, :count] = 2 * x[:, 1:7:2, :count]
    np.testing.assert_array_equal(y, wanted)


def test_threads_claim_chunks_of_the_iterations() -> None:
    text = """
llvm.func @omp_get_thread_num() -> i32
func.func @f(%y: memref<1000xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %0 = llvm.call @omp_get_thread_num() : () -> i32
    memref.store %0, %y[%i] : memref<1000xi32>
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}"""
    y = np.full(1000, -1, np.int32)
    symbols = _libgomp()
    team = ctypes.CDLL(ctypes.util.find_library("gomp"))
    team.omp_set_num_threads(3)
    Native(text, OutlineParallel(), symbols=symbols).call("f", y)
    assert {*y.tolist()} <= {0, 1, 2}
    bounds = [1000 * chunk // 24 for chunk in range(25)]
    for begin, end in pairwise(bounds):
        assert len({*y[begin:end].tolist()}) == 1


def test_parallel_bodies_know_what_cannot_alias() -> None:
    text = """
func.func @f(%x: memref<64xf32>, %arena: memref<1024xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %at0 = arith.constant 0 : index
  %at256 = arith.constant 256 : index
  %at384 = arith.constant 384 : index
  %a = "host.place"(%arena, %at0) : (memref<1024xi8>, index) -> memref<64xf32>
  %b = "host.place"(%arena, %at256) : (memref<1024xi8>, index) -> memref<64xf32>
  %c = "host.place"(%arena, %at384) : (memref<1024xi8>, index) -> memref<64xf32>
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %0 = memref.load %x[%i] : memref<64xf32>
    memref.store %0, %a[%i] : memref<64xf32>
    memref.store %0, %b[%i] : memref<64xf32>
    memref.store %0, %c[%i] : memref<64xf32>
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}"""
    (body,) = _outlined(text)
    assert body.arg_attrs is not None
    marked = [MAY_ALIAS in attributes.data for attributes in body.arg_attrs]
    assert marked == [False, False, False, False, True, True]


def test_parallel_loops_over_arguments_are_vectorised(tmp_path: Path) -> None:
    text = _NEST.replace("%n: index", "").replace("xf32>, )", "xf32>)").replace(", %n,", ", %c7,")
    target = CodegenTarget(CodegenTarget.host().triple, "x86-64-v3", "")
    with patch.object(CodegenTarget, "current", lambda: target):
        assembly = optimised_assembly(lowered(text, OutlineParallel()), tmp_path)
    assert "fmul <8 x float>" in assembly


def test_nested_parallel_loops_run_in_one_thread() -> None:
    inner = _NEST.replace("memref.store %1", "memref.store %3").replace(
        "    %1 = arith.mulf %0, %k : f32\n",
        """    %1 = arith.mulf %0, %k : f32
    %t = memref.alloca() : memref<4xf32>
    %c4 = arith.constant 4 : index
    "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
    ^bb0(%m: index):
      memref.store %1, %t[%m] : memref<4xf32>
      scf.reduce
    }) : (index, index, index) -> ()
    %c3 = arith.constant 3 : index
    %3 = memref.load %t[%c3] : memref<4xf32>
""",
    )
    assert len(_outlined(inner)) == 1
    x = np.random.default_rng(8).normal(size=(5, 7, 9)).astype(np.float32)
    y = np.zeros_like(x)
    _run(inner, True, x, y, 9)
    np.testing.assert_array_equal(y[:, 1:7:2], 2 * x[:, 1:7:2])


def test_empty_loops_disappear_and_reductions_are_refused() -> None:
    text = """
func.func @f() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %c0, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}"""
    assert _outlined(text) == []
    reduction = """
func.func @f(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = "scf.parallel"(%c0, %c1, %c1, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    scf.reduce(%x : f32) {
    ^bb1(%a: f32, %b: f32):
      scf.reduce.return %a : f32
    }
  }) : (index, index, index, f32) -> f32
  func.return
}"""
    with pytest.raises(PassFailedException, match=r"reduces 1 value\(s\); reductions are not"):
        _outlined(reduction)
