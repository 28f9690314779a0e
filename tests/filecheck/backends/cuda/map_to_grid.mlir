// RUN: byoc-opt %s --split-input-file -p map-to-grid | filecheck %s

// A thread computes one element.
func.func private @relu(%x: memref<4x100xf32>, %y: memref<4x100xf32>) attributes {byoc.kernel = "relu"} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x100xf32>) outs(%y : memref<4x100xf32>) {
  ^bb0(%in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %max = arith.maximumf %in, %zero : f32
    linalg.yield %max : f32
  }
  func.return
}
// CHECK-LABEL: func.func private @relu
// CHECK-SAME:    cuda.threads = 400 : i64
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 400 : index
// CHECK-DAG:     llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"
// CHECK-DAG:     llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"
// CHECK:         %[[THREAD:.*]] = arith.index_cast
// CHECK:         arith.cmpi ult, %[[THREAD]], %[[COUNT]] : index
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      memref.load %{{.*}}[%[[THREAD]]]
// CHECK:           arith.maximumf
// CHECK-NEXT:      memref.store %{{.*}}[%[[THREAD]]]

// -----

// A warp reduces a row of contiguous elements; what its lanes exchange in memory may alias.
func.func private @sum(%x: memref<10x96xf32>, %y: memref<10xf32>) attributes {byoc.kernel = "sum"} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%y : memref<10xf32>) {
  ^bb0(%out: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<10x96xf32>) outs(%y : memref<10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %total = arith.addf %out, %in : f32
    linalg.yield %total : f32
  }
  func.return
}
// CHECK-LABEL: func.func private @sum
// CHECK-SAME:    %{{[^:]*}}: memref<10x96xf32>, %{{[^:]*}}: memref<10xf32> {byoc.may_alias}
// CHECK-SAME:    cuda.threads = 320 : i64
// CHECK:         %[[LANE:.*]] = arith.remui
// CHECK:         scf.for %{{.*}} = %[[LANE]] to %{{.*}} step
// CHECK:           memref.store
// CHECK:         llvm.call_intrinsic "llvm.nvvm.bar.warp.sync"
// CHECK:         scf.for %{{.*}} = %[[LANE]] to %{{.*}} step %{{.*}} iter_args
// CHECK:           arith.addf
// CHECK-COUNT-5: llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.f32"
// CHECK:         scf.for %{{.*}} = %[[LANE]] to
// CHECK:           memref.store

// -----

// A thread reduces a column.
func.func private @columns(%x: memref<96x10xf32>, %y: memref<10xf32>) attributes {byoc.kernel = "columns"} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : memref<96x10xf32>) outs(%y : memref<10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %total = arith.addf %out, %in : f32
    linalg.yield %total : f32
  }
  func.return
}
// CHECK-LABEL: func.func private @columns
// CHECK-SAME:    cuda.threads = 10 : i64
// CHECK-NOT:     shfl

// -----

// Iterations of independent loops become threads; ops before the inner loop run in each.
func.func private @take(%x: memref<8x16xf32>, %i: memref<4xi64>, %y: memref<4x16xf32>) attributes {byoc.kernel = "take"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %a = %c0 to %c4 step %c1 {
    %n = memref.load %i[%a] : memref<4xi64>
    %row = arith.index_cast %n : i64 to index
    scf.for %b = %c0 to %c16 step %c1 {
      %v = memref.load %x[%row, %b] : memref<8x16xf32>
      memref.store %v, %y[%a, %b] : memref<4x16xf32>
    } {host.independent}
  } {host.independent}
  func.return
}
// CHECK-LABEL: func.func private @take
// CHECK-SAME:    cuda.threads = 64 : i64
// CHECK:         scf.if
// CHECK:           %[[B:.*]] = arith.remui
// CHECK:           %[[A:.*]] = arith.divui
// CHECK:           memref.load %{{.*}}[%[[A]]] : memref<4xi64>
// CHECK:           memref.store %{{.*}}[%[[A]], %[[B]]]
// CHECK-NOT:     scf.for

// -----

// One thread runs loops that depend on each other.
func.func private @running(%x: memref<8xf32>, %y: memref<8xf32>) attributes {byoc.kernel = "running"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %a = %c0 to %c8 step %c1 {
    %v = memref.load %x[%a] : memref<8xf32>
    memref.store %v, %y[%a] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: func.func private @running
// CHECK-SAME:    cuda.threads = 1 : i64
// CHECK:         scf.if
// CHECK:           scf.for
