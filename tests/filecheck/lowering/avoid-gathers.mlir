// RUN: byoc-opt %s -p 'bufferize,outline-kernels,outline-parallel{threads=false},lower-scf-to-cf,convert-to-llvm,avoid-gathers{features="+avx2,-fma"}' | filecheck %s --check-prefixes=CHECK,GATHERS
// RUN: byoc-opt %s -p 'bufferize,outline-kernels,outline-parallel{threads=false},lower-scf-to-cf,convert-to-llvm,avoid-gathers{features="+sse4.1"}' | filecheck %s --check-prefixes=CHECK,NONE

// A kernel says that LLVM makes no gathers of its loads, its parallel loop as well; the other one's
// function keeps the features of the target, and so do all where there are no gathers.

func.func @main(%x: tensor<8xf32>, %i: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = host.kernel "walk" prefer_no_gather %x, %i : (tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %b: memref<8xi64>, %c: memref<8xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    "scf.parallel"(%c0, %c8, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
    ^bb1(%k: index):
      %n = memref.load %b[%k] : memref<8xi64>
      %j = arith.index_cast %n : i64 to index
      %e = memref.load %a[%j] : memref<8xf32>
      memref.store %e, %c[%k] : memref<8xf32>
      scf.reduce
    }) : (index, index, index) -> ()
    host.yield
  }
  %t = host.kernel "copy" %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>):
    "memref.copy"(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
    host.yield
  }
  func.return %r, %t : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: llvm.func internal @walk_0(
// GATHERS-SAME: target_features = #llvm.target_features<["+avx2", "-fma", "+prefer-no-gather"]>
// NONE-NOT:     target_features
// CHECK-LABEL: llvm.func internal @walk_0_parallel_0(
// GATHERS-SAME: target_features = #llvm.target_features<["+avx2", "-fma", "+prefer-no-gather"]>
// NONE-NOT:     target_features
// CHECK-LABEL: llvm.func internal @copy_1(
// CHECK-NOT:    target_features
