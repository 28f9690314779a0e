// RUN: byoc-opt %s --backend %backends --split-input-file -p 'merge-composite{targets=gamma},split-products{targets=gamma},fold-constants' | filecheck %s
// RUN: byoc-opt %s --backend %backends --split-input-file -p 'merge-composite{targets=beta},split-products{targets=beta}' | filecheck %s --check-prefix NONE

// NONE-NOT: bf16

// The parts of the data are high, high, low; what is not finite is in the first alone. What is in
// one composite with the product stays as it is.
func.func @chain(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = relay.constant dense<0.3> : tensor<2x2x1x1xf32>
  %b = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2x4x4xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %2 = relay.nn.relu %1 : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %2 : tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @chain
// CHECK:         %[[M:.*]] = relay.constant dense<3.40282347e+38>
// CHECK:         %[[Z:.*]] = relay.constant dense<0.000000e+00>
// CHECK-NEXT:    %[[A:.*]] = relay.abs %x
// CHECK-NEXT:    %[[F:.*]] = relay.less_equal %[[A]], %[[M]]
// CHECK-NEXT:    %[[V:.*]] = relay.where %[[F]], %x, %[[Z]]
// CHECK-NEXT:    %[[N:.*]] = relay.clip %[[V]] {a_min = -3.389{{.*}}e+38, a_max = 3.389{{.*}}e+38}
// CHECK-NEXT:    %[[S:.*]] = relay.where %[[F]], %[[N]], %x
// CHECK-NEXT:    %[[H:.*]] = relay.cast %[[S]] {dtype = bf16}
// CHECK-NEXT:    %[[B:.*]] = relay.cast %[[N]] {dtype = bf16}
// CHECK-NEXT:    %[[W:.*]] = relay.cast %[[B]] {dtype = f32}
// CHECK-NEXT:    %[[R:.*]] = relay.subtract %[[V]], %[[W]]
// CHECK-NEXT:    %[[C:.*]] = relay.clip %[[R]] {a_min = -1.324{{.*}}e+36, a_max = 1.324{{.*}}e+36}
// CHECK-NEXT:    %[[L:.*]] = relay.cast %[[C]] {dtype = bf16}
// CHECK-NEXT:    %[[D:.*]] = relay.concatenate %[[H]], %[[B]], %[[L]] {axis = 1} : {{.*}} -> tensor<1x6x4x4xbf16>
// CHECK-NEXT:    %[[K:.*]] = relay.constant #relay.weight<{{.*}}> : tensor<2x6x1x1xbf16>
// CHECK-NEXT:    %[[O:.*]] = relay.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    byoc.composite "gamma.conv2d_bias_relu" {{.*}} (%{{.*}} = %[[O]] : tensor<2xf32>, %[[P:.*]] = %[[D]] : tensor<1x6x4x4xbf16>, %[[Q:.*]] = %[[K]] : tensor<2x6x1x1xbf16>) -> tensor<1x2x4x4xf32> {
// CHECK-NEXT:      relay.nn.conv2d %[[P]], %[[Q]] {{.*}}, out_dtype = f32, byoc.computed_in = "bf16x3"} : {{.*}} -> tensor<1x2x4x4xf32>

// -----

// Weights that are computed have their parts in another order. Channels are split group by group.
func.func @groups(%x: tensor<1x4x4x4xf32>, %w: tensor<6x2x1x1xf32>) -> tensor<1x6x4x4xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x4x4x4xf32>, tensor<6x2x1x1xf32>) -> tensor<1x6x4x4xf32>
  func.return %0 : tensor<1x6x4x4xf32>
}
// CHECK-LABEL: func.func @groups
// CHECK:         %[[V:.*]] = relay.cast %{{.*}} {dtype = bf16} : (tensor<6x2x1x1xf32>)
// CHECK-NEXT:    %[[W:.*]] = relay.cast %{{.*}} {dtype = bf16} : (tensor<6x2x1x1xf32>)
// CHECK:         %[[X:.*]] = relay.cast %{{.*}} {dtype = bf16} : (tensor<6x2x1x1xf32>)
// CHECK-NEXT:    %[[Y:.*]] = relay.concatenate %[[V]], %[[X]], %[[W]] {axis = 1} : {{.*}} -> tensor<6x6x1x1xbf16>
// CHECK:         relay.reshape %{{.*}} : (tensor<1x4x4x4xbf16>) -> tensor<1x2x2x4x4xbf16>
// CHECK:         %[[J:.*]] = relay.concatenate {{.*}} {axis = 2} : {{.*}} -> tensor<1x2x6x4x4xbf16>
// CHECK-NEXT:    %[[D:.*]] = relay.reshape %[[J]] {{.*}} -> tensor<1x12x4x4xbf16>
// CHECK-NEXT:    relay.nn.conv2d %[[D]], %[[Y]] {{.*}} -> tensor<1x6x4x4xf32>

// -----

// A product that its backend has a faster algorithm for stays in f32, and says why.
// CHECK:       byoc.kept_float = {window = "windows are faster"}
// CHECK-LABEL: func.func @window
// CHECK-NEXT:    relay.nn.conv2d %x, %v
func.func @window(%x: tensor<1x2x4x4xf32>, %v: tensor<2x2x3x3xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.conv2d %x, %v {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x4x4xf32> loc("window")
  func.return %0 : tensor<1x2x4x4xf32>
}
