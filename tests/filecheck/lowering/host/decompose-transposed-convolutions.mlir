// RUN: byoc-opt %s --split-input-file -p decompose-transposed-convolutions | filecheck %s

// Four places of two taps along each axis; each goes to every second line and pixel.
func.func @strided(%x: tensor<1x8x6x6xf32>) -> tensor<1x3x12x12xf32> {
  %w = relay.constant dense<0.5> : tensor<8x3x4x4xf32>
  %0 = relay.nn.conv2d_transpose %x, %w {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x8x6x6xf32>, tensor<8x3x4x4xf32>) -> tensor<1x3x12x12xf32>
  func.return %0 : tensor<1x3x12x12xf32>
}
// CHECK-LABEL: func.func @strided
// CHECK:       %[[ALL:.*]] = relay.nn.conv2d %x, %{{.*}} {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x8x6x6xf32>, tensor<12x8x2x2xf32>) -> tensor<1x12x7x7xf32>
// CHECK:       %[[ONE:.*]] = tensor.extract_slice %[[ALL]][0, 0, 1, 1] [1, 3, 6, 6] [1, 1, 1, 1]
// CHECK:       tensor.insert_slice %[[ONE]] into %{{.*}}[0, 0, 1, 1] [1, 3, 6, 6] [1, 1, 2, 2]
// CHECK-COUNT-3: tensor.insert_slice
// CHECK-NOT:   relay.nn.conv2d_transpose

// -----

// A window of three and a stride of two make no places of as many taps.
func.func @stays(%x: tensor<1x8x6x6xf32>) -> tensor<1x3x13x13xf32> {
  %v = relay.constant dense<0.5> : tensor<8x3x3x3xf32>
  %0 = relay.nn.conv2d_transpose %x, %v {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x8x6x6xf32>, tensor<8x3x3x3xf32>) -> tensor<1x3x13x13xf32>
  func.return %0 : tensor<1x3x13x13xf32>
}
// CHECK-LABEL: func.func @stays
// CHECK:       relay.nn.conv2d_transpose
