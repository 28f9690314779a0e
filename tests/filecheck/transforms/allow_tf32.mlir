// RUN: byoc-opt %s -p 'allow-tf32{targets=cublaslt exact=second}' | filecheck %s

// A product of f32 is marked, those that the user wants exact and those of f16 are not.
// CHECK-LABEL: func.func @main
// CHECK:         %0 = relay.nn.dense %x, %w {byoc.computed_in = "tf32"}
// CHECK-NEXT:    %1 = relay.nn.dense %x, %w : (tensor<4x8xf32>
// CHECK-NEXT:    %2 = relay.nn.dense %h, %v : (tensor<4x8xf16>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<2x8xf32>, %h: tensor<4x8xf16>, %v: tensor<2x8xf16>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf16>) {
  %0 = relay.nn.dense %x, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32> loc("first")
  %1 = relay.nn.dense %x, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32> loc("second")
  %2 = relay.nn.dense %h, %v : (tensor<4x8xf16>, tensor<2x8xf16>) -> tensor<4x2xf16> loc("third")
  func.return %0, %1, %2 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf16>
}
