// RUN: byoc-opt %s --split-input-file -p 'unsigned-bytes{vnni=false}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'unsigned-bytes{vnni=true}' | filecheck %s --check-prefix VNNI

// VNNI-LABEL: func.func @chain
// VNNI-NOT: ui8
func.func @chain(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = relay.constant dense<65> : tensor<2x1x1x1xi8>
  %zero = relay.constant dense<-5> : tensor<i8>
  %w_zero = relay.constant dense<0> : tensor<i8>
  %scale = relay.constant dense<0.5> : tensor<f32>
  %c0 = relay.constant dense<0> : tensor<i32>
  %0 = relay.qnn.quantize %x, %scale, %zero : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xi8>
  %1 = relay.qnn.conv2d %0, %w, %zero, %w_zero {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x2x4x4xi8>, tensor<2x1x1x1xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2x4x4xi32>
  %2 = relay.qnn.requantize %1, %scale, %c0, %scale, %zero : (tensor<1x2x4x4xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xi8>
  %3 = relay.clip %2 {a_min = -5.0, a_max = 127.0} : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8>
  %4 = relay.qnn.add %3, %0, %scale, %zero, %scale, %zero, %scale, %zero : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xi8>
  %5 = relay.qnn.dequantize %4, %scale, %zero : (tensor<1x2x4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xf32>
  func.return %5 : tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @chain
// CHECK:         relay.constant dense<123> : tensor<ui8>
// CHECK:         relay.qnn.quantize {{.*}} -> tensor<1x2x4x4xui8>
// CHECK:         relay.qnn.conv2d {{.*}} : (tensor<1x2x4x4xui8>, tensor<2x1x1x1xi8>, tensor<ui8>, tensor<i8>)
// CHECK:         relay.qnn.requantize {{.*}} -> tensor<1x2x4x4xui8>
// CHECK:         relay.clip {{.*}}a_min = 123.0, a_max = 255.0
// CHECK:         relay.qnn.add {{.*}} -> tensor<1x2x4x4xui8>
// CHECK:         relay.qnn.dequantize {{.*}} : (tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>)

// -----

// What is seen, what is joined with it, and what a zero point is computed for stay.
func.func @seen(%x: tensor<4xf32>, %y: tensor<4xi8>, %computed: tensor<i8>) -> (tensor<4xi8>, tensor<8xi8>, tensor<4xf32>) {
  %zero = relay.constant dense<-5> : tensor<i8>
  %scale = relay.constant dense<0.5> : tensor<f32>
  %0 = relay.qnn.quantize %x, %scale, %zero : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %1 = relay.qnn.quantize %x, %scale, %zero : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %2 = relay.concatenate %1, %y {axis = 0 : i64} : (tensor<4xi8>, tensor<4xi8>) -> tensor<8xi8>
  %3 = relay.qnn.quantize %x, %scale, %computed : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %4 = relay.qnn.dequantize %3, %scale, %computed : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  func.return %0, %2, %4 : tensor<4xi8>, tensor<8xi8>, tensor<4xf32>
}
// CHECK-LABEL: func.func @seen
// CHECK-NOT: ui8

// -----

// With VNNI, too, where a zero point becomes 0.
func.func @relu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = relay.constant dense<-128> : tensor<i8>
  %scale = relay.constant dense<0.5> : tensor<f32>
  %0 = relay.qnn.quantize %x, %scale, %zero : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %1 = relay.qnn.dequantize %0, %scale, %zero : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @relu
// CHECK:         relay.qnn.quantize {{.*}} -> tensor<4xui8>
// VNNI-LABEL: func.func @relu
// VNNI:         relay.qnn.quantize {{.*}} -> tensor<4xui8>
