// RUN: byoc-opt %s -p fold-constants{max-bytes=8} | filecheck %s

func.func @grows() -> tensor<4x4xf32> {
  %a = relay.constant dense<1.0> : tensor<f32>
  %0 = relay.broadcast_to %a {shape = [4, 4]} : (tensor<f32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @grows
// CHECK:         relay.broadcast_to

// larger than the cap, but not than the operands
func.func @does_not_grow() -> tensor<2x2xf32> {
  %a = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.reshape %a {newshape = [2, 2]} : (tensor<4xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func @does_not_grow
// CHECK-NOT:     relay.reshape
