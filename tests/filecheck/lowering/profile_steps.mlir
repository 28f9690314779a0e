// RUN: byoc-opt %s -p profile-steps | filecheck %s

// Calls of @main that stand for ONNX nodes, and those that a region's function marks, are timed. The
// region's slots begin at the second of four: the clock is three further on. Calls of OpenMP's runtime
// go through a function that times its threads.
builtin.module attributes {byoc.context_slots = 4 : i64} {
  llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
  llvm.func internal @relu_0(%0: !llvm.ptr) {
    %1 = llvm.mlir.constant(0 : i32) : i32
    llvm.call @GOMP_parallel(%0, %0, %1, %1) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
    llvm.return
  }
  llvm.func @dnnl_main_0(%0: !llvm.ptr, %1: !llvm.ptr) -> i32 attributes {byoc.context_offset = 1 : i64} {
    %2 = llvm.call @execute(%0) {byoc.step = {implementation = "jit", layout = "nchw"}} : (!llvm.ptr) -> i32 loc("conv")
    %3 = llvm.call @execute(%0) : (!llvm.ptr) -> i32
    llvm.return %2 : i32
  }
  llvm.func @execute(!llvm.ptr) -> i32
  llvm.func internal @main(%state: !llvm.ptr, %context: !llvm.ptr, %x: !llvm.ptr) -> i32 attributes {byoc.arena_bytes = 64 : i64} {
    llvm.call @relu_0(%x) : (!llvm.ptr) -> () loc("relu")
    %0 = llvm.call @dnnl_main_0(%state, %context) : (!llvm.ptr, !llvm.ptr) -> i32 loc("conv")
    llvm.return %0 : i32
  }
}
// CHECK:       builtin.module attributes {byoc.context_slots = 11 : i64, byoc.steps = [
// CHECK-SAME:    {nodes = ["conv"], region = "dnnl_main_0", implementation = "jit", layout = "nchw"}
// CHECK-SAME:    {nodes = ["relu"], region = "", implementation = "relu_0", layout = ""}
// CHECK-SAME:    {nodes = ["conv"], region = "", implementation = "dnnl_main_0", layout = ""}
// CHECK:         llvm.func internal @relu_0
// CHECK:           llvm.call @byoc_profile_parallel
// CHECK:         llvm.func @dnnl_main_0
// CHECK-NEXT:      llvm.call @execute
// CHECK-NEXT:      %[[CLOCK:.*]] = llvm.getelementptr inbounds %{{.*}}[3]
// CHECK-NEXT:      %[[SUM:.*]] = llvm.getelementptr inbounds %{{.*}}[4]
// CHECK-NEXT:      %[[OTHERS:.*]] = llvm.getelementptr inbounds %{{.*}}[7]
// CHECK-NEXT:      llvm.call @byoc_profile_tick(%[[CLOCK]], %[[SUM]], %[[OTHERS]])
// CHECK-NEXT:      llvm.call @execute
// CHECK-NEXT:      llvm.return
// CHECK:         llvm.func internal @main
// CHECK-NEXT:      %[[CLOCK:.*]] = llvm.getelementptr inbounds %context[4]
// CHECK-NEXT:      llvm.call @byoc_profile_start(%[[CLOCK]])
// CHECK-NEXT:      llvm.call @relu_0(%x)
// CHECK-NEXT:      llvm.getelementptr inbounds %context[4]
// CHECK-NEXT:      %[[SUM:.*]] = llvm.getelementptr inbounds %context[6]
// CHECK-NEXT:      llvm.getelementptr inbounds %context[9]
// CHECK-NEXT:      llvm.call @byoc_profile_tick
// CHECK:         llvm.func internal @byoc_profile_tick
// CHECK:         llvm.func internal @byoc_profile_parallel
// CHECK:           llvm.call @GOMP_parallel
// CHECK:         llvm.func internal @byoc_profile_worker
// CHECK:         llvm.mlir.global internal @byoc_profile_others(0 : i64)
