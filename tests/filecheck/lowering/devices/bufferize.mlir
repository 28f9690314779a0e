// RUN: byoc-opt %s -p bufferize | filecheck %s

// A region's tensors are buffers of its device; a copy is a transfer into the result's buffer.
// CHECK-LABEL: func.func @main(%x: memref<4xf32>, %out: memref<4xf32>, %out_1: memref<2x2xf32>)
// CHECK-NEXT:    [[D:%.*]] = memref.alloc() {{.*}} : memref<4xf32, "npu">
// CHECK-NEXT:    byoc.transfer %x, [[D]] : memref<4xf32>, memref<4xf32, "npu">
// CHECK-NEXT:    [[E:%.*]] = memref.alloc() {{.*}} : memref<4xf32, "npu">
// CHECK-NEXT:    func.call @npu_0([[D]], [[E]]) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
// CHECK-NEXT:    byoc.transfer [[E]], %out : memref<4xf32, "npu">, memref<4xf32>
// CHECK-NEXT:    [[V:%.*]] = memref.reinterpret_cast [[E]] {{.*}} : memref<4xf32, "npu"> to memref<2x2xf32, "npu">
// CHECK-NEXT:    byoc.transfer [[V]], %out_1 : memref<2x2xf32, "npu">, memref<2x2xf32>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
  %square = arith.constant dense<2> : tensor<2xi64>
  %0 = byoc.copy %x from "host" to "npu" : tensor<4xf32>
  %1 = func.call @npu_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.copy %1 from "npu" to "host" : tensor<4xf32>
  %3 = tensor.reshape %1(%square) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %4 = byoc.copy %3 from "npu" to "host" : tensor<2x2xf32>
  func.return %2, %4 : tensor<4xf32>, tensor<2x2xf32>
}
// CHECK: func.func private @npu_0(memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
func.func private @npu_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
