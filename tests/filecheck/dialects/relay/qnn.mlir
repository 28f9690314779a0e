// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @affine(%x: tensor<2x8xf32>, %s: tensor<f32>, %z: tensor<i8>, %sc: tensor<8xf32>, %sb: tensor<2x2xf32>, %zb: tensor<2x2xi4>) -> tensor<2x8xf32> {
  %0 = relay.qnn.quantize %x, %s, %z : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  %1 = relay.qnn.dequantize %0, %sc, %z : (tensor<2x8xi8>, tensor<8xf32>, tensor<i8>) -> tensor<2x8xf32>
  %2 = relay.qnn.quantize %1, %sb, %zb {axis = -1, block_size = 4} : (tensor<2x8xf32>, tensor<2x2xf32>, tensor<2x2xi4>) -> tensor<2x8xi4>
  %3 = relay.qnn.dequantize %2, %sb, %zb {axis = -1, block_size = 4} : (tensor<2x8xi4>, tensor<2x2xf32>, tensor<2x2xi4>) -> tensor<2x8xf32>
  func.return %3 : tensor<2x8xf32>
}
// CHECK-LABEL: func.func @affine(
// CHECK:       %0 = relay.qnn.quantize %x, %s, %z : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
// CHECK-NEXT:  %1 = relay.qnn.dequantize %0, %sc, %z : (tensor<2x8xi8>, tensor<8xf32>, tensor<i8>) -> tensor<2x8xf32>
// CHECK-NEXT:  %2 = relay.qnn.quantize %1, %sb, %zb {axis = -1, block_size = 4} : {{.*}} -> tensor<2x8xi4>
// CHECK-NEXT:  %3 = relay.qnn.dequantize %2, %sb, %zb {axis = -1, block_size = 4} : {{.*}} -> tensor<2x8xf32>

func.func @convolution(%x: tensor<1x4x5x5xui8>, %zx: tensor<ui8>, %w: tensor<6x2x3x3xi8>, %zw: tensor<6xi8>, %b: tensor<6xi32>, %si: tensor<6xf32>, %zi: tensor<i32>, %so: tensor<f32>) -> tensor<1x6x5x5xui8> {
  %0 = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 2} : (tensor<1x4x5x5xui8>, tensor<6x2x3x3xi8>, tensor<ui8>, tensor<6xi8>) -> tensor<1x6x5x5xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x6x5x5xi32>, tensor<6xi32>) -> tensor<1x6x5x5xi32>
  %2 = relay.qnn.requantize %1, %si, %zi, %so, %zx : (tensor<1x6x5x5xi32>, tensor<6xf32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<1x6x5x5xui8>
  func.return %2 : tensor<1x6x5x5xui8>
}
// CHECK-LABEL: func.func @convolution(
// CHECK:       %0 = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 2}
// CHECK-SAME:    (tensor<1x4x5x5xui8>, tensor<6x2x3x3xi8>, tensor<ui8>, tensor<6xi8>) -> tensor<1x6x5x5xi32>
// CHECK:       %2 = relay.qnn.requantize %1, %si, %zi, %so, %zx : {{.*}} -> tensor<1x6x5x5xui8>

func.func @transposed(%x: tensor<1x4x5xui8>, %zx: tensor<ui8>, %w: tensor<4x6x3xi8>, %zw: tensor<6xi8>) -> tensor<1x6x9xi32> {
  %0 = relay.qnn.conv1d_transpose %x, %w, %zx, %zw {strides = [2], padding = [1, 1], dilation = [1], output_padding = [0]} : (tensor<1x4x5xui8>, tensor<4x6x3xi8>, tensor<ui8>, tensor<6xi8>) -> tensor<1x6x9xi32>
  func.return %0 : tensor<1x6x9xi32>
}
// CHECK-LABEL: func.func @transposed(
// CHECK:       relay.qnn.conv1d_transpose %x, %w, %zx, %zw

func.func @products(%a: tensor<2x3x4xui8>, %b: tensor<4x5xi8>, %w: tensor<5x4xi8>, %za: tensor<2x3x1xui8>, %z: tensor<ui8>, %zb: tensor<1x5xi8>, %zw: tensor<5xi8>) -> (tensor<2x3x5xi32>, tensor<2x3x5xi32>) {
  %0 = relay.qnn.matmul %a, %b, %za, %zb : (tensor<2x3x4xui8>, tensor<4x5xi8>, tensor<2x3x1xui8>, tensor<1x5xi8>) -> tensor<2x3x5xi32>
  %1 = relay.qnn.dense %a, %w, %z, %zw : (tensor<2x3x4xui8>, tensor<5x4xi8>, tensor<ui8>, tensor<5xi8>) -> tensor<2x3x5xi32>
  func.return %0, %1 : tensor<2x3x5xi32>, tensor<2x3x5xi32>
}
// CHECK-LABEL: func.func @products(
// CHECK:       relay.qnn.matmul %a, %b, %za, %zb
// CHECK-NEXT:  relay.qnn.dense %a, %w, %z, %zw

func.func @others(%a: tensor<1x3x4x4xui8>, %b: tensor<3x1x1xi8>, %s: tensor<f32>, %z: tensor<ui8>, %zb: tensor<i8>, %t: tensor<256xui8>) -> tensor<1x3x1x1xui8> {
  %0 = relay.qnn.add %a, %b, %s, %z, %s, %zb, %s, %z : (tensor<1x3x4x4xui8>, tensor<3x1x1xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x4x4xui8>
  %1 = relay.qnn.multiply %0, %b, %s, %z, %s, %zb, %s, %z : (tensor<1x3x4x4xui8>, tensor<3x1x1xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x4x4xui8>
  %2 = relay.qnn.lookup %1, %t : (tensor<1x3x4x4xui8>, tensor<256xui8>) -> tensor<1x3x4x4xui8>
  %3 = relay.qnn.avg_pool2d %2, %s, %z, %s, %z {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x4x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x2x2xui8>
  %4 = relay.qnn.global_avg_pool2d %3, %s, %z, %s, %z : (tensor<1x3x2x2xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x1x1xui8>
  func.return %4 : tensor<1x3x1x1xui8>
}
// CHECK-LABEL: func.func @others(
// CHECK:       relay.qnn.add %a, %b, %s, %z, %s, %zb, %s, %z
// CHECK-NEXT:  relay.qnn.multiply %0, %b, %s, %z, %s, %zb, %s, %z
// CHECK-NEXT:  relay.qnn.lookup %1, %t
// CHECK-NEXT:  relay.qnn.avg_pool2d %2, %s, %z, %s, %z
// CHECK-NEXT:  relay.qnn.global_avg_pool2d %3, %s, %z, %s, %z
