// RUN: byoc-opt %s -p plan-buffers | filecheck %s

// Each space has an arena, with the workspaces of its regions.
// CHECK-LABEL: func.func @main(%arena: memref<128xi8>, %gpu_arena: memref<64xi8, "gpu">, %npu_arena: memref<320xi8, "npu">, %x: memref<16xf32>)
// CHECK-SAME:    byoc.device_arenas = {gpu = 64 : i64, npu = 320 : i64}, byoc.arena_bytes = 128 : i64
func.func @main(%x: memref<16xf32>) {
  // CHECK: host.place %npu_arena{{.*}} : memref<320xi8, "npu"> to memref<16xf32, "npu">
  %d = memref.alloc() : memref<16xf32, "npu">
  byoc.transfer %x, %d : memref<16xf32>, memref<16xf32, "npu">
  // CHECK: host.place %npu_arena{{.*}} : memref<320xi8, "npu"> to memref<16xf32, "npu">
  %e = memref.alloc() : memref<16xf32, "npu">
  func.call @npu_0(%d, %e) : (memref<16xf32, "npu">, memref<16xf32, "npu">) -> ()
  // CHECK: host.place %arena{{.*}} : memref<128xi8> to memref<16xf32>
  %h = memref.alloc() : memref<16xf32>
  byoc.transfer %e, %h : memref<16xf32, "npu">, memref<16xf32>
  // CHECK: host.place %gpu_arena{{.*}} : memref<64xi8, "gpu"> to memref<16xf32, "gpu">
  %g = memref.alloc() : memref<16xf32, "gpu">
  byoc.transfer %h, %g : memref<16xf32>, memref<16xf32, "gpu">
  // CHECK: host.place %npu_arena{{.*}} : memref<320xi8, "npu"> to memref<64xi8, "npu">
  // CHECK: host.place %gpu_arena{{.*}} : memref<64xi8, "gpu"> to memref<0xi8, "gpu">
  // CHECK: host.place %arena{{.*}} : memref<128xi8> to memref<64xi8>
  // CHECK: func.call @branch({{%[^,]*, %[^,]*, %[^,]*}}, %h)
  func.call @branch(%h) : (memref<16xf32>) -> ()
  func.call @cpu_0(%h, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  func.return
}
// CHECK-LABEL: func.func private @branch(%arena: memref<64xi8>, %gpu_arena: memref<0xi8, "gpu">, %npu_arena: memref<64xi8, "npu">, %h: memref<16xf32>)
func.func private @branch(%h: memref<16xf32>) {
  %0 = memref.alloc() : memref<16xf32, "npu">
  byoc.transfer %h, %0 : memref<16xf32>, memref<16xf32, "npu">
  %1 = memref.alloc() : memref<16xf32>
  byoc.transfer %0, %1 : memref<16xf32, "npu">, memref<16xf32>
  func.return
}
// CHECK: func.func private @npu_0
// CHECK-SAME: byoc.workspace_offset = 0 : i64
func.func private @npu_0(memref<16xf32, "npu">, memref<16xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu", byoc.workspace = 192 : i64}
// CHECK: func.func private @cpu_0
// CHECK-SAME: byoc.workspace_offset = 64 : i64
func.func private @cpu_0(memref<16xf32>, memref<16xf32>) -> () attributes {byoc.compiler = "cpu", byoc.workspace = 64 : i64}
func.func private @gpu_0(memref<16xf32, "gpu">) -> () attributes {byoc.compiler = "gpu", byoc.memory_space = "gpu"}
