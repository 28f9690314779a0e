// RUN: byoc-opt %s --split-input-file -p 'convolutions-to-float{vnni=false}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'convolutions-to-float{vnni=true}' | filecheck %s --check-prefix VNNI

// VNNI-NOT: relay.nn.conv2d
func.func @rounded(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xui8> {
  %w = relay.constant dense<65> : tensor<1x1x3x3xi8>
  %x_zero = relay.constant dense<5> : tensor<ui8>
  %w_zero = relay.constant dense<-1> : tensor<i8>
  %b = relay.constant dense<[10]> : tensor<1xi32>
  %scale = relay.constant dense<0.5> : tensor<f32>
  %c0 = relay.constant dense<0> : tensor<i32>
  %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x4x4xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x1x4x4xi32>, tensor<1xi32>) -> tensor<1x1x4x4xi32>
  %2 = relay.qnn.requantize %1, %scale, %c0, %scale, %x_zero : (tensor<1x1x4x4xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xui8>
  func.return %2 : tensor<1x1x4x4xui8>
}
// CHECK-LABEL: func.func @rounded
// CHECK:         %[[W:.*]] = relay.constant dense<6.600000e+01> : tensor<1x1x3x3xf32>
// CHECK:         %[[S:.*]] = relay.nn.conv2d %{{.*}}, %[[W]] {{.*}} -> tensor<1x1x4x4xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.round %[[S]]
// CHECK-NEXT:    %[[I:.*]] = relay.cast %[[R]] {dtype = i32}
// CHECK-NEXT:    relay.nn.bias_add %[[I]]

// -----

// A bias whose scale is computed while the model runs is added by an op of its own.
func.func @added(%x: tensor<1x1x4x4xui8>, %b: tensor<1x1x1x1xi32>) -> tensor<1x1x4x4xf32> {
  %w = relay.constant dense<65> : tensor<1x1x3x3xi8>
  %x_zero = relay.constant dense<5> : tensor<ui8>
  %w_zero = relay.constant dense<-1> : tensor<i8>
  %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x4x4xi32>
  %1 = relay.add %0, %b : (tensor<1x1x4x4xi32>, tensor<1x1x1x1xi32>) -> tensor<1x1x4x4xi32>
  %2 = relay.cast %1 {dtype = f32} : (tensor<1x1x4x4xi32>) -> tensor<1x1x4x4xf32>
  func.return %2 : tensor<1x1x4x4xf32>
}
// CHECK-LABEL: func.func @added
// CHECK:         relay.nn.conv2d
// CHECK:         relay.add %{{.*}}, %b

// -----

// Sums that are seen are exact, small weights are fast, and steps leave no algorithm to choose.
func.func @others(%x: tensor<1x1x4x4xui8>) -> (tensor<1x1x4x4xi32>, tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>) {
  %w = relay.constant dense<65> : tensor<1x1x3x3xi8>
  %small = relay.constant dense<64> : tensor<1x1x3x3xi8>
  %x_zero = relay.constant dense<5> : tensor<ui8>
  %w_zero = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x4x4xi32>
  %1 = relay.qnn.conv2d %x, %small, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x4x4xi32>
  %2 = relay.cast %1 {dtype = f32} : (tensor<1x1x4x4xi32>) -> tensor<1x1x4x4xf32>
  %3 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x2x2xi32>
  %4 = relay.cast %3 {dtype = f32} : (tensor<1x1x2x2xi32>) -> tensor<1x1x2x2xf32>
  func.return %0, %2, %4 : tensor<1x1x4x4xi32>, tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>
}
// CHECK-LABEL: func.func @others
// CHECK-NOT:     relay.nn.conv2d

// -----

// Channels apart: data of `i8` only.
func.func @apart(%x: tensor<1x2x4x4xi8>, %y: tensor<1x2x4x4xui8>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %w = relay.constant dense<65> : tensor<2x1x2x2xi8>
  %x_zero = relay.constant dense<5> : tensor<i8>
  %y_zero = relay.constant dense<5> : tensor<ui8>
  %w_zero = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x2x4x4xi8>, tensor<2x1x2x2xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2x4x4xi32>
  %1 = relay.cast %0 {dtype = f32} : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xf32>
  %2 = relay.qnn.conv2d %y, %w, %y_zero, %w_zero {strides = [1, 1], padding = [1, 1, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x2x4x4xui8>, tensor<2x1x2x2xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x2x4x4xi32>
  %3 = relay.cast %2 {dtype = f32} : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xf32>
  func.return %1, %3 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @apart
// CHECK:         relay.nn.conv2d {{.*}} groups = 2
// CHECK:         relay.qnn.conv2d %y
