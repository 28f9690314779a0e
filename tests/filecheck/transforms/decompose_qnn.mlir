// RUN: byoc-opt %s -p decompose-qnn | filecheck %s
// RUN: byoc-opt %s -p 'decompose-qnn{kept="relay.qnn.conv2d"}' | filecheck %s --check-prefix KEPT

func.func @dequantize(%x: tensor<2x4xui8>, %s: tensor<4xf32>, %z: tensor<ui8>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x4xui8>, tensor<4xf32>, tensor<ui8>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @dequantize
// CHECK:         %[[S:.*]] = relay.reshape %s {newshape = [1, 4]}
// CHECK-NEXT:    %[[X:.*]] = relay.cast %x {dtype = f32}
// CHECK-NEXT:    %[[Z:.*]] = relay.cast %z {dtype = f32}
// CHECK-NEXT:    %[[D:.*]] = relay.subtract %[[X]], %[[Z]]
// CHECK-NEXT:    relay.multiply %[[D]], %[[S]]

// zero points of nothing leave no trace
func.func @quantize(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xi8> {
  %z = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.quantize %x, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  func.return %0 : tensor<4xi8>
}
// CHECK-LABEL: func.func @quantize
// CHECK-NEXT:    %[[S:.*]] = relay.divide %x, %s
// CHECK-NEXT:    %[[R:.*]] = relay.round %[[S]]
// CHECK-NEXT:    %[[C:.*]] = relay.clip %[[R]] {a_min = -128.0, a_max = 127.0}
// CHECK-NEXT:    relay.cast %[[C]] {dtype = i8}

func.func @convolution(%x: tensor<1x4x5x5xui8>, %zx: tensor<ui8>, %w: tensor<6x4x3x3xi8>) -> tensor<1x6x5x5xi32> {
  %zw = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x4x5x5xui8>, tensor<6x4x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x6x5x5xi32>
  func.return %0 : tensor<1x6x5x5xi32>
}
// CHECK-LABEL: func.func @convolution
// CHECK-NEXT:    %[[X:.*]] = relay.cast %x {dtype = i32}
// CHECK-NEXT:    %[[Z:.*]] = relay.cast %zx {dtype = i32}
// CHECK-NEXT:    %[[D:.*]] = relay.subtract %[[X]], %[[Z]]
// CHECK-NEXT:    %[[W:.*]] = relay.cast %w {dtype = i32}
// CHECK-NEXT:    relay.nn.conv2d %[[D]], %[[W]] {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]}
// KEPT-LABEL:  func.func @convolution
// KEPT:          relay.qnn.conv2d %x, %w, %zx, %zw
