// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xf16>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error @below {{relay.qnn.quantize: data must be of f32, found tensor<2xf16>}}
  %0 = relay.qnn.quantize %x, %s, %z : (tensor<2xf16>, tensor<f32>, tensor<i8>) -> tensor<2xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>, %z: tensor<i8>) {
  // expected-error @below {{relay.qnn.quantize: scale must be tensor<f32> or tensor<3xf32>, found tensor<2xf32>}}
  %0 = relay.qnn.quantize %x, %s, %z : (tensor<2x3xf32>, tensor<2xf32>, tensor<i8>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x7xi8>, %s: tensor<2x3xf32>, %z: tensor<i8>) {
  // expected-error @below {{relay.qnn.dequantize: scale must be tensor<f32> or tensor<2x2xf32>, found tensor<2x3xf32>}}
  %0 = relay.qnn.dequantize %x, %s, %z {block_size = 4} : (tensor<2x7xi8>, tensor<2x3xf32>, tensor<i8>) -> tensor<2x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x7xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @below {{relay.qnn.dequantize: zero_point must be tensor<i8> or tensor<1xi8>, found tensor<ui8>}}
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x7xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi32>, %s: tensor<3xf32>, %zi: tensor<i32>, %so: tensor<3xf32>, %zo: tensor<i8>) {
  // expected-error @below {{relay.qnn.requantize: output_scale must be tensor<f32>, found tensor<3xf32>}}
  %0 = relay.qnn.requantize %x, %s, %zi, %so, %zo : (tensor<2x3xi32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<i8>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x5x5xui8>, %w: tensor<6x4x3x3xi16>, %zx: tensor<ui8>, %zw: tensor<i16>) {
  // expected-error @below {{relay.qnn.conv2d: weight must be of i8, ui8, found tensor<6x4x3x3xi16>}}
  %0 = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x4x5x5xui8>, tensor<6x4x3x3xi16>, tensor<ui8>, tensor<i16>) -> tensor<1x6x5x5xi32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x5x5xui8>, %w: tensor<6x4x3x3xi8>, %zx: tensor<ui8>, %zw: tensor<4xi8>) {
  // expected-error @below {{relay.qnn.conv2d: weight_zero_point must be tensor<i8> or tensor<6xi8>, found tensor<4xi8>}}
  %0 = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x4x5x5xui8>, tensor<6x4x3x3xi8>, tensor<ui8>, tensor<4xi8>) -> tensor<1x6x5x5xi32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x5xui8>, %w: tensor<4x3x3xi8>, %zx: tensor<ui8>, %zw: tensor<6xi8>) {
  // expected-error @below {{relay.qnn.conv1d_transpose: weight_zero_point must be tensor<i8>, found tensor<6xi8>}}
  %0 = relay.qnn.conv1d_transpose %x, %w, %zx, %zw {strides = [1], padding = [1, 1], dilation = [1], output_padding = [0], groups = 2} : (tensor<1x4x5xui8>, tensor<4x3x3xi8>, tensor<ui8>, tensor<6xi8>) -> tensor<1x6x5xi32>
  func.return
}

// -----

func.func @f(%a: tensor<2x3xui8>, %b: tensor<3x5xi8>, %za: tensor<2x3xui8>, %zb: tensor<i8>) {
  // expected-error @below {{relay.qnn.matmul: a_zero_point must be tensor<ui8>, or broadcast to tensor<2x3xui8> and have size 1 along the inner dimension, found tensor<2x3xui8>}}
  %0 = relay.qnn.matmul %a, %b, %za, %zb : (tensor<2x3xui8>, tensor<3x5xi8>, tensor<2x3xui8>, tensor<i8>) -> tensor<2x5xi32>
  func.return
}

// -----

func.func @f(%a: tensor<2x3xui8>, %w: tensor<5x4xi8>, %za: tensor<ui8>, %zw: tensor<i8>) {
  // expected-error @below {{relay.qnn.dense: expected data [..., in] and weight [units, in], found tensor<2x3xui8> and tensor<5x4xi8>}}
  %0 = relay.qnn.dense %a, %w, %za, %zw : (tensor<2x3xui8>, tensor<5x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<2x5xi32>
  func.return
}

// -----

func.func @f(%a: tensor<2xui8>, %s: tensor<f32>, %z: tensor<ui8>, %zi: tensor<i8>) {
  // expected-error @below {{relay.qnn.add: rhs_zero_point must be tensor<ui8>, found tensor<i8>}}
  %0 = relay.qnn.add %a, %a, %s, %z, %s, %zi, %s, %z : (tensor<2xui8>, tensor<2xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<2xui8>
  func.return
}

// -----

func.func @f(%a: tensor<2xui8>, %t: tensor<16xui8>) {
  // expected-error @below {{relay.qnn.lookup: table must have 256 elements, found tensor<16xui8>}}
  %0 = relay.qnn.lookup %a, %t : (tensor<2xui8>, tensor<16xui8>) -> tensor<2xui8>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x4xui8>, %s: tensor<f32>, %z: tensor<ui8>, %zo: tensor<i32>) {
  // expected-error @below {{relay.qnn.avg_pool1d: output_zero_point must be of i8, ui8, found tensor<i32>}}
  %0 = relay.qnn.avg_pool1d %x, %s, %z, %s, %zo {pool_size = [2], strides = [2], padding = [0, 0], dilation = [1]} : (tensor<1x3x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i32>) -> tensor<1x3x2xi32>
  func.return
}
