// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p 'check-legal{stage=loops}' | filecheck %s

func.func @legal(%x: memref<4xf32>, %i: index) -> f32 {
  %0 = memref.load %x[%i] : memref<4xf32>
  func.return %0 : f32
}
// CHECK: func.func @legal

// -----

func.func @illegal(%x: tensor<4xf32>, %i: index) -> f32 {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.empty() : tensor<4xf32>
  // expected-error @below {{2 kinds of op are not legal in stage loops (accepted:}}
  %3 = tensor.extract %x[%i] : tensor<4xf32>
  func.return %3 : f32
}
