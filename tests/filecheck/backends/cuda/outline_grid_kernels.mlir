// RUN: byoc-opt %s -p convert-relay-to-linalg,fuse-elementwise,bufferize,outline-grid-kernels | filecheck %s

// A softmax is one kernel, of one warp for each row; so is the convolution with its bias and relu.
func.func @main(%x: tensor<8x64xf32>, %i: tensor<1x2x9x9xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<4xf32>) -> (tensor<8x64xf32>, tensor<1x4x7x7xf32>) {
  %0 = relay.nn.softmax %x {axis = -1} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = relay.nn.conv2d %i, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x2x9x9xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x7x7xf32>
  %2 = relay.nn.bias_add %1, %b : (tensor<1x4x7x7xf32>, tensor<4xf32>) -> tensor<1x4x7x7xf32>
  %3 = relay.nn.relu %2 : (tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  func.return %0, %3 : tensor<8x64xf32>, tensor<1x4x7x7xf32>
}
// CHECK-LABEL: func.func @main
// CHECK:         func.call @softmax_0
// CHECK:         func.call @conv2d_bias_add_relu_1
// CHECK-NOT:     func.call
