// RUN: byoc-opt %s -p plan-buffers | filecheck %s

// %a and %c are never alive together and share memory; the workspace of the region is free while it runs.
// CHECK-LABEL: func.func @main(%arena: memref<320xi8>, %{{.*}}: memref<16xf32>) attributes {byoc.arena_bytes = 320 : i64}
func.func @main(%x: memref<16xf32>) {
  // CHECK-NOT: memref.alloc
  // CHECK: host.place %arena[%[[A:.*]]] : memref<320xi8> to memref<16xf32>
  // CHECK: host.place %arena
  // CHECK: host.place %arena
  %a = memref.alloc() : memref<16xf32>
  func.call @f(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  %b = memref.alloc() : memref<16xf32>
  func.call @r(%a, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  %c = memref.alloc() : memref<16xf32>
  func.call @f(%b, %c) : (memref<16xf32>, memref<16xf32>) -> ()
  func.call @f(%c, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  func.return
}
func.func private @f(memref<16xf32>, memref<16xf32>) -> ()
// CHECK: func.func private @r
// CHECK-SAME: byoc.workspace_offset = 0 : i64
func.func private @r(memref<16xf32>, memref<16xf32>) -> () attributes {byoc.compiler = "npu", byoc.workspace = 192 : i64}
