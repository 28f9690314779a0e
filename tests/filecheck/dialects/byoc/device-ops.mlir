// RUN: byoc-opt %s --split-input-file | byoc-opt --split-input-file | filecheck %s
// RUN: byoc-opt %s --split-input-file --print-op-generic | byoc-opt --split-input-file | filecheck %s

// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: [[D:%.*]] = byoc.copy %x from "host" to "npu" : tensor<2x4xf32>
  %0 = byoc.copy %x from "host" to "npu" : tensor<2x4xf32>
  // CHECK-NEXT: byoc.copy [[D]] from "npu" to "host" : tensor<2x4xf32>
  %1 = byoc.copy %0 from "npu" to "host" : tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @buffers
func.func @buffers(%x: memref<4xf32>, %d: memref<4xf32, "npu">) {
  // CHECK-NEXT: byoc.transfer %x, %d : memref<4xf32>, memref<4xf32, "npu">
  byoc.transfer %x, %d : memref<4xf32>, memref<4xf32, "npu">
  // CHECK-NEXT: byoc.transfer %d, %x : memref<4xf32, "npu">, memref<4xf32>
  byoc.transfer %d, %x : memref<4xf32, "npu">, memref<4xf32>
  // CHECK-NEXT: byoc.wait "npu"
  byoc.wait "npu"
  func.return
}
