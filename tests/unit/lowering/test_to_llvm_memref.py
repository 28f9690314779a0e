"""Memory ops: addresses, views, storage of bools, copies, vectors."""

from __future__ import annotations

import numpy as np
import pytest
from jit_helpers import Native, lowered
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import make_context
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM

_COPY = '"memref.copy"(%{}, %{}) : ({}, {}) -> ()'


def test_strided_views() -> None:
    text = """
func.func @f(%x: memref<6x8xf32>, %y: memref<2x3xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = "memref.reinterpret_cast"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
    static_offsets = array<i64: 9>, static_sizes = array<i64: 2, 3>,
    static_strides = array<i64: 16, 2>}>
    : (memref<6x8xf32>) -> memref<2x3xf32, strided<[16, 2], offset: 9>>
  scf.for %r = %c0 to %c2 step %c1 {
    scf.for %s = %c0 to %c3 step %c1 {
      %0 = memref.load %v[%r, %s] : memref<2x3xf32, strided<[16, 2], offset: 9>>
      memref.store %0, %y[%r, %s] : memref<2x3xf32>
    }
  }
  %k = memref.load %v[%c1, %i] : memref<2x3xf32, strided<[16, 2], offset: 9>>
  memref.store %k, %y[%c0, %c0] : memref<2x3xf32>
  func.return
}"""
    x = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    y = np.zeros((2, 3), np.float32)
    Native(text).call("f", x, y, 2)
    wanted = x[1:5:2, 1:7:2].copy()
    wanted[0, 0] = wanted[1, 2]
    np.testing.assert_array_equal(y, wanted)


def test_reshapes_and_byte_views_share_memory() -> None:
    text = """
func.func @f(%arena: memref<128xi8>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %v = "host.place"(%arena, %c64) : (memref<128xi8>, index) -> memref<2x2xf32>
  %e = "memref.reinterpret_cast"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
    static_offsets = array<i64: 0>, static_sizes = array<i64: 1, 4>,
    static_strides = array<i64: 4, 1>}> : (memref<2x2xf32>) -> memref<1x4xf32, strided<[4, 1]>>
  %r = "memref.reinterpret_cast"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
    static_offsets = array<i64: 1>, static_sizes = array<i64: 3>, static_strides = array<i64: 1>}>
    : (memref<2x2xf32>) -> memref<3xf32, strided<[1], offset: 1>>
  scf.for %i = %c0 to %c4 step %c1 {
    %0 = memref.load %e[%c0, %i] : memref<1x4xf32, strided<[4, 1]>>
    memref.store %0, %y[%i] : memref<4xf32>
  }
  %1 = memref.load %r[%c0] : memref<3xf32, strided<[1], offset: 1>>
  memref.store %1, %y[%c0] : memref<4xf32>
  func.return
}"""
    arena = np.arange(32, dtype=np.float32)
    y = np.zeros(4, np.float32)
    Native(text).call("f", arena, y)
    np.testing.assert_array_equal(y, [17, 17, 18, 19])


def test_bools_take_a_byte() -> None:
    text = """
func.func @f(%x: memref<8xi1>, %y: memref<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xi1>
    %1 = arith.xori %0, %true : i1
    memref.store %1, %y[%i] : memref<8xi1>
  }
  func.return
}"""
    x = np.array([0, 1, 1, 0, 1, 0, 0, 1], np.bool_)
    y = np.zeros(8, np.bool_)
    Native(text).call("f", x, y)
    np.testing.assert_array_equal(y.view(np.uint8), (~x).view(np.uint8))


def test_allocas_are_hoisted_out_of_loops() -> None:
    text = """
func.func @f(%y: memref<1xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloca() : memref<4096xf32>
    %0 = memref.load %y[%c0] : memref<1xf32>
    memref.store %0, %a[%i] : memref<4096xf32>
    %1 = memref.load %a[%i] : memref<4096xf32>
    %2 = arith.addf %1, %1 : f32
    memref.store %2, %y[%c0] : memref<1xf32>
  }
  func.return
}"""
    module = lowered(text)
    (function,) = module.body.block.ops
    allocas = [op for op in module.walk() if op.name == "llvm.alloca"]
    assert [op.parent_block() for op in allocas] == [function.regions[0].first_block]
    assert str(allocas[0].properties["alignment"]) == "64 : i64"


def test_copies() -> None:
    type_ = "memref<4x6xf32>"
    text = f"""
func.func @f(%x: {type_}, %y: {type_}) {{
  {_COPY.format("x", "y", type_, type_)}
  func.return
}}"""
    x = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    y = np.zeros_like(x)
    Native(text).call("f", x, y)
    np.testing.assert_array_equal(y, x)


def test_vectors() -> None:
    text = """
func.func @f(%x: memref<2x8xf32>, %y: memref<8xf32>, %s: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = vector.load %x[%c0, %c0] : memref<2x8xf32>, vector<8xf32>
  %b = vector.load %x[%c1, %c0] : memref<2x8xf32>, vector<8xf32>
  %k = "vector.broadcast"(%s) : (f32) -> vector<8xf32>
  %p = arith.mulf %a, %k : vector<8xf32>
  %r = arith.addf %p, %b : vector<8xf32>
  %t = arith.addf %r, %k : vector<8xf32>
  vector.store %t, %y[%c0] : memref<8xf32>, vector<8xf32>
  %e = vector.extract %t[2] : f32 from vector<8xf32>
  %u = "vector.broadcast"(%e) : (f32) -> vector<8xf32>
  %m = "vector.create_mask"(%n) : (index) -> vector<8xi1>
  "vector.maskedstore"(%y, %c0, %m, %u) : (memref<8xf32>, index, vector<8xi1>, vector<8xf32>) -> ()
  func.return
}"""
    x = np.random.default_rng(2).normal(size=(2, 8)).astype(np.float32)
    y = np.zeros(8, np.float32)
    Native(text).call("f", x, y, 1.5, 3)
    wanted = (x[0] * np.float32(1.5) + x[1]) + np.float32(1.5)
    stored = wanted.copy()
    stored[:3] = wanted[2]
    np.testing.assert_allclose(y, stored, rtol=1e-6)


def test_sums_of_lanes() -> None:
    text = """
func.func @f(%x: memref<8xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
  %r = "vector.reduction"(%a) <{kind = #vector.kind<add>}> : (vector<8xf32>) -> f32
  memref.store %r, %y[%c0] : memref<1xf32>
  func.return
}"""
    x = np.random.default_rng(6).normal(size=8).astype(np.float32)
    y = np.zeros(1, np.float32)
    Native(text).call("f", x, y)
    np.testing.assert_allclose(y[0], x.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%0 = memref.alloc() : memref<4xf32>",
            "memref.alloc of memref<4xf32> is left; buffers are planned before",
        ),
        (
            "%0 = memref.load %d[%i] : memref<4xf32, strided<[?]>>",
            "has a layout that is not known statically",
        ),
        (
            "%0 = vector.load %d[%i] : memref<4xf32, strided<[?]>>, vector<4xf32>",
            "the last dimension must have stride 1",
        ),
        (
            '%v = "vector.broadcast"(%s) : (f32) -> vector<4xf32>'
            '\n  %0 = "vector.reduction"(%v) <{kind = #vector.kind<mul>}> : (vector<4xf32>) -> f32',
            "vector.reduction of kind mul cannot be lowered; accepted is add",
        ),
        ("%0 = memref.alloca(%i) : memref<?xf32>", "has a run-time size; make it static"),
        (
            _COPY.format("u", "u", "memref<?xf32>", "memref<?xf32>"),
            "cannot be lowered; accepted are contiguous memrefs of static shapes",
        ),
        (
            '"test.unknown"(%i) : (index) -> ()',
            "1 kind of op is not legal in stage llvm.*\n  test.unknown: 1, the first at",
        ),
    ],
)
def test_what_cannot_be_lowered_is_an_error(body: str, message: str) -> None:
    context = make_context()
    context.allow_unregistered = True
    text = f"""
func.func @f(%d: memref<4xf32, strided<[?]>>, %u: memref<?xf32>, %i: index, %s: f32) {{
  %c0 = arith.constant 0 : index
  {body}
  func.return
}}"""
    module = Parser(context, text).parse_module()
    with pytest.raises(PassFailedException, match=message):
        ConvertToLLVM().apply(context, module)
