// RUN: byoc-opt %s -p 'check-legal{stage=buffers}' | filecheck %s

// Regions of a device, copies and views are on its memory.
// CHECK-LABEL: func.func @main
func.func @main(%x: memref<4xf32>, %out: memref<4xf32>) {
  %d = memref.alloc() : memref<4xf32, "npu">
  byoc.transfer %x, %d : memref<4xf32>, memref<4xf32, "npu">
  func.call @npu_0(%d, %d) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  %v = memref.reinterpret_cast %d to offset: [0], sizes: [2, 2], strides: [2, 1] : memref<4xf32, "npu"> to memref<2x2xf32, "npu">
  byoc.transfer %d, %out : memref<4xf32, "npu">, memref<4xf32>
  byoc.wait "npu"
  func.call @relu(%out, %out) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
func.func private @relu(memref<4xf32>, memref<4xf32>) -> () attributes {byoc.kernel}
func.func private @npu_0(memref<4xf32, "npu">, memref<4xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
