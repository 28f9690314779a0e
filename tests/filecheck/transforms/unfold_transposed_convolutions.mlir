// RUN: byoc-opt %s --split-input-file -p unfold-transposed-convolutions | filecheck %s

// The places of a window are channels until they are bytes; parameters and bias are there for each.
// CHECK-LABEL: func.func @pixels
// CHECK:         %[[W:.*]] = relay.constant dense<{{.*}}1{{.*}}3{{.*}}2{{.*}}4{{.*}}> : tensor<4x1x1x1xi8>
// CHECK-NEXT:    %[[S:.*]] = relay.constant dense<[5.000000e-01, 2.500000e-01, 5.000000e-01, 2.500000e-01]> : tensor<4xf32>
// CHECK-NEXT:    %[[V:.*]] = relay.qnn.dequantize %[[W]], %[[S]], %{{.*}} {axis = 0}
// CHECK-NEXT:    %[[C:.*]] = relay.nn.conv2d %{{.*}}, %[[V]] {{.*}} : (tensor<1x1x3x3xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x3x3xf32>
// CHECK-NEXT:    %[[B:.*]] = relay.constant dense<[1.000000e+00, 2.000000e+00, 1.000000e+00, 2.000000e+00]> : tensor<4xf32>
// CHECK-NEXT:    relay.nn.bias_add %[[C]], %[[B]]
// CHECK-NEXT:    relay.nn.relu
// CHECK-NEXT:    %[[Q:.*]] = relay.qnn.quantize {{.*}} -> tensor<1x4x3x3xui8>
// CHECK-NEXT:    %[[R:.*]] = relay.reshape %[[Q]] {newshape = [1, 1, 2, 2, 3, 3]}
// CHECK-NEXT:    %[[T:.*]] = relay.transpose %[[R]] {axes = [0, 3, 4, 1, 5, 2]}
// CHECK-NEXT:    %[[Y:.*]] = relay.reshape %[[T]] {newshape = [1, 2, 3, 6]}
// CHECK-NEXT:    func.return %[[Y]]
func.func @pixels(%x: tensor<1x1x3x3xui8>) -> tensor<1x2x3x6xui8> {
  %w = relay.constant dense<[[[[1, 2]], [[3, 4]]]]> : tensor<1x2x1x2xi8>
  %s = relay.constant dense<0.1> : tensor<f32>
  %z = relay.constant dense<3> : tensor<ui8>
  %v = relay.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %o = relay.constant dense<0> : tensor<i8>
  %b = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x1x3x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3x3xf32>
  %1 = relay.qnn.dequantize %w, %v, %o {axis = 1} : (tensor<1x2x1x2xi8>, tensor<2xf32>, tensor<i8>) -> tensor<1x2x1x2xf32>
  %2 = relay.nn.conv2d_transpose %0, %1 {strides = [1, 2], padding = [0, 0, 0, 0], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x1x3x3xf32>, tensor<1x2x1x2xf32>) -> tensor<1x2x3x6xf32>
  %3 = relay.nn.bias_add %2, %b : (tensor<1x2x3x6xf32>, tensor<2xf32>) -> tensor<1x2x3x6xf32>
  %4 = relay.nn.relu %3 : (tensor<1x2x3x6xf32>) -> tensor<1x2x3x6xf32>
  %5 = relay.qnn.quantize %4, %s, %z : (tensor<1x2x3x6xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x3x6xui8>
  func.return %5 : tensor<1x2x3x6xui8>
}

// -----

// Windows that overlap stay, and what is not quantised.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-2: relay.nn.conv2d_transpose
func.func @stays(%x: tensor<1x1x3x3xui8>) -> (tensor<1x1x4x4xui8>, tensor<1x1x3x3xf32>) {
  %w = relay.constant dense<1> : tensor<1x1x2x2xi8>
  %u = relay.constant dense<1> : tensor<1x1x1x1xi8>
  %s = relay.constant dense<0.1> : tensor<f32>
  %z = relay.constant dense<3> : tensor<ui8>
  %o = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x1x3x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %o : (tensor<1x1x2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x1x2x2xf32>
  %2 = relay.qnn.dequantize %u, %s, %o : (tensor<1x1x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<1x1x1x1xf32>
  %3 = relay.nn.conv2d_transpose %0, %1 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x4x4xf32>
  %4 = relay.qnn.quantize %3, %s, %z : (tensor<1x1x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xui8>
  %5 = relay.nn.conv2d_transpose %0, %2 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
  func.return %4, %5 : tensor<1x1x4x4xui8>, tensor<1x1x3x3xf32>
}
