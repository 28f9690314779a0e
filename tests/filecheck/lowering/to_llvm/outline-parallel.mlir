// RUN: byoc-opt %s -p 'outline-parallel{threads=false}' | filecheck %s --check-prefixes=BODY,SERIAL
// RUN: byoc-opt %s -p 'outline-parallel' | filecheck %s --check-prefixes=BODY,THREADS

func.func @f(%x: memref<64x8xf32>, %y: memref<64x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c8 = arith.constant 8 : index
  "scf.parallel"(%c0, %c0, %c64, %c8, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    %0 = memref.load %x[%i, %j] : memref<64x8xf32>
    memref.store %0, %y[%i, %j] : memref<64x8xf32>
    scf.reduce
  }) : (index, index, index, index, index, index) -> ()
  func.return
}

// SERIAL:      %[[END:.*]] = arith.constant 512 : index
// SERIAL-NEXT: func.call @f_parallel_0(%{{.*}}, %[[END]], %x, %y)

// THREADS:      %[[DATA:.*]] = llvm.alloca {{.*}} x !llvm.struct<(!llvm.ptr, !llvm.ptr)>
// THREADS:      %[[CHUNK:.*]] = llvm.mlir.addressof @f_parallel_0_chunk : !llvm.ptr
// THREADS:      %[[TOTAL:.*]] = builtin.unrealized_conversion_cast %{{.*}} : index to i64
// THREADS-NEXT: %[[ALL:.*]] = llvm.mlir.constant(0 : i32) : i32
// THREADS-NEXT: llvm.call @byoc_parallel_for(%[[CHUNK]], %[[DATA]], %[[TOTAL]], %[[ALL]])

// BODY:      func.func private @f_parallel_0(%begin: index, %end: index, %x: memref<64x8xf32>, %y: memref<64x8xf32>) {
// BODY:      scf.for %i = %{{.*}} to %{{.*}} step
// BODY:        %[[LOWER:.*]] = arith.maxsi
// BODY:        %[[UPPER:.*]] = arith.minsi
// BODY:        scf.for %j = %[[LOWER]] to %[[UPPER]] step
// BODY-NEXT:     memref.load %x[%i, %j]
// BODY-NEXT:     memref.store %{{.*}}, %y[%i, %j]

// THREADS:      llvm.func internal @f_parallel_0_chunk(%[[CAPTURED:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// THREADS:      func.call @f_parallel_0(
// THREADS:      llvm.func internal @byoc_keep_cores()
// THREADS:      llvm.func internal @byoc_run_chunks(
// THREADS:      llvm.atomicrmw
// THREADS:      llvm.func internal @byoc_parallel_for(
// THREADS:      llvm.call @byoc_keep_cores()
// THREADS:      llvm.call @GOMP_parallel(
