// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p convert-to-llvm | filecheck %s

func.func @returns_a_buffer(%x: memref<4xf32>) -> memref<4xf32> {
  func.return %x : memref<4xf32>
}
// CHECK: func.func @returns_a_buffer returns (memref<4xf32>); at this stage a function returns nothing or one scalar

// -----

func.func @allocates() {
  %0 = memref.alloc() : memref<4xf32>
  func.return
}
// CHECK: memref.alloc of memref<4xf32> is left; buffers are planned before the lowering to llvm

// -----

func.func @loops(%n: index) {
  scf.for %i = %n to %n step %n {
  }
  func.return
}
// CHECK: 2 kinds of op are not legal in stage llvm (accepted: builtin.module, llvm):
// CHECK: scf.for: 1, the first at
// CHECK: scf.yield: 1, the first at

// -----

func.func @tuples(%x: tuple<i32>) {
  func.return
}
// CHECK: type tuple<i32> has no counterpart in the llvm dialect
