// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p convert-to-llvm

// expected-error @below {{func.func @returns_a_buffer returns (memref<4xf32>); at this stage a function returns nothing or one scalar}}
func.func @returns_a_buffer(%x: memref<4xf32>) -> memref<4xf32> {
  func.return %x : memref<4xf32>
}

// -----

func.func @allocates() {
  // expected-error @below {{memref.alloc of memref<4xf32> is left; buffers are planned before the lowering to llvm}}
  %0 = memref.alloc() : memref<4xf32>
  func.return
}

// -----

// expected-error @below {{2 kinds of op are not legal in stage llvm (accepted: builtin.module, llvm):}}
func.func @loops(%n: index) {
  scf.for %i = %n to %n step %n {
  }
  func.return
}

// -----

// expected-error @below {{type tuple<i32> has no counterpart in the llvm dialect}}
func.func @tuples(%x: tuple<i32>) {
  func.return
}
