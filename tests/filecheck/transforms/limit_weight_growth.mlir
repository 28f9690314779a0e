// RUN: byoc-opt %s -p 'limit-weight-growth{free=0}' --split-input-file | filecheck %s
// RUN: byoc-opt %s -p 'limit-weight-growth{memory=1.5 free=0}' --split-input-file | filecheck %s --check-prefix LESS
// RUN: byoc-opt %s -p 'limit-weight-growth{free=6912}' --split-input-file | filecheck %s --check-prefix FREE

// 576 bytes of weights of a convolution, in a composite of a region, and 2,048 bytes of others; at
// most two values of 2,048 bytes live at once: 1 + ((2 - 1) * 2,624 + 4,096) / 576
func.func @main(%x: tensor<1x2x8x8xf32>) -> tensor<1x8x8x8xf32> {
  %0 = func.call @region(%x) : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x8xf32>
  func.return %0 : tensor<1x8x8x8xf32>
}
func.func private @region(%x: tensor<1x2x8x8xf32>) -> tensor<1x8x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<8x2x3x3xf32>
  %again = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<8x2x3x3xf32>
  %v = relay.constant #relay.weight<"v", "00000000000000000000000000000002"> : tensor<1x8x8x8xf32>
  %0 = byoc.composite "dnnl.conv2d" from "nn.conv2d_" (%a = %x : tensor<1x2x8x8xf32>, %b = %w : tensor<8x2x3x3xf32>) -> tensor<1x8x8x8xf32> {
    %1 = relay.nn.conv2d %a, %b {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x2x8x8xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x8x8xf32>
    byoc.yield %1 : tensor<1x8x8x8xf32>
  }
  %2 = relay.add %0, %v : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  func.return %2 : tensor<1x8x8x8xf32>
}
// CHECK:      func.func @main{{.*}} attributes {byoc.weight_growth = 1.2667{{.*}}e+01 : f64}
// CHECK:      func.func private @region{{.*}}byoc.weight_growth = 1.2667{{.*}}e+01 : f64}
// LESS:       func.func private @region{{.*}}byoc.weight_growth = 1.0389{{.*}}e+01 : f64}
// 6,912 bytes beside the 576 are more than that
// FREE:       func.func private @region{{.*}}byoc.weight_growth = 1.3{{0*}}e+01 : f64}

// -----

// no convolutions: nothing to say
func.func @products(%x: tensor<1x32xf32>) -> tensor<1x32xf32> {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x32xf32>
  %0 = relay.nn.dense %x, %w : (tensor<1x32xf32>, tensor<32x32xf32>) -> tensor<1x32xf32>
  func.return %0 : tensor<1x32xf32>
}
// CHECK-LABEL: func.func @products
// CHECK-NOT:     byoc.weight_growth

// -----

// 576 bytes of weights of a convolution of bytes; 128 bytes and 128 sums live at once:
// 1 + (576 + 640) / 576
func.func @bytes(%x: tensor<1x8x4x4xui8>) -> tensor<1x8x4x4xi32> {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<8x8x3x3xi8>
  %x_zero = relay.constant dense<9> : tensor<ui8>
  %w_zero = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x8x4x4xui8>, tensor<8x8x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x8x4x4xi32>
  func.return %0 : tensor<1x8x4x4xi32>
}
// CHECK-LABEL: func.func @bytes{{.*}}byoc.weight_growth = 3.111{{.*}}e+00 : f64}
