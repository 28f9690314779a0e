// RUN: byoc-opt %s -p 'add-entry-points{threads=2 flush-denormals=true}' | filecheck %s
// RUN: byoc-opt %s -p 'add-entry-points{flush-denormals=true}' | filecheck %s --check-prefix SERIAL
// RUN: byoc-opt %s -p 'add-entry-points{threads=2}' | filecheck %s --check-prefix KEEP

// Denormals are zero while @main runs, on all threads of the run; then as the caller has them.
func.func @main(%arena: memref<512xi8>, %x: memref<4xf32>, %y: memref<4xf32>) {
  func.return
}

// CHECK-LABEL: func.func @byoc_run(
// CHECK:      llvm.call @omp_set_num_threads(
// CHECK-NEXT: [[BEGUN:%.*]] = llvm.call @byoc_begin_run()
// CHECK-NEXT: [[BEFORE:%.*]] = llvm.call @byoc_flush_denormals()
// CHECK-NEXT: func.call @main(
// CHECK-NEXT: llvm.call @byoc_restore_denormals([[BEFORE]])
// CHECK-NEXT: llvm.call @byoc_end_run([[BEGUN]])
// CHECK-NEXT: llvm.call @omp_set_num_threads(
// CHECK-LABEL: llvm.func internal @byoc_flush_denormals() -> i32
// CHECK:      llvm.call_intrinsic "llvm.x86.sse.stmxcsr"
// CHECK-LABEL: llvm.func internal @byoc_set_denormals(
// CHECK:      llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"
// CHECK-LABEL: llvm.func internal @byoc_restore_denormals(
// CHECK:      llvm.call @GOMP_parallel(

// SERIAL-LABEL: func.func @byoc_run(
// SERIAL:      llvm.call @byoc_flush_denormals()
// SERIAL-LABEL: llvm.func internal @byoc_restore_denormals(
// SERIAL:      llvm.call @byoc_set_denormals(
// SERIAL-NOT:  GOMP_parallel

// KEEP-NOT: denormals
