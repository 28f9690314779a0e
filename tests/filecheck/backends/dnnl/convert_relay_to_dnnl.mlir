// RUN: byoc-opt %s --split-input-file -p convert-relay-to-dnnl | filecheck %s

// A composite becomes one primitive: the first addition per channel is the bias, the rest post-ops.
func.func private @r(%x: tensor<1x3x8x8xf32>, %w: tensor<16x3x3x3xf32>, %b: tensor<16xf32>, %y: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.conv2d_bias_sum_relu" from "nn.conv2d_nn.bias_add_add_nn.relu_" (%p = %x : tensor<1x3x8x8xf32>, %q = %w : tensor<16x3x3x3xf32>, %r = %b : tensor<16xf32>, %s = %y : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
    %1 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x8x8xf32>
    %2 = relay.nn.bias_add %1, %r : (tensor<1x16x8x8xf32>, tensor<16xf32>) -> tensor<1x16x8x8xf32>
    %3 = relay.add %s, %2 : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %4 = relay.nn.relu %3 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    byoc.yield %4 : tensor<1x16x8x8xf32>
  }
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func private @r
// CHECK-NEXT:    %[[R:.*]] = dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.binary<add>, #dnnl.eltwise<relu>]}
// CHECK-NEXT:    func.return %[[R]]

// -----

// The constants decide what an expression means; the number may stand anywhere in the product.
func.func private @gelu(%x: tensor<4x64xf32>, %w: tensor<32x64xf32>) -> tensor<4x32xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.dense_gelu_erf" from "" (%p = %x : tensor<4x64xf32>, %q = %w : tensor<32x64xf32>) -> tensor<4x32xf32> {
    %half = relay.constant dense<0.5> : tensor<f32>
    %one = relay.constant dense<1.0> : tensor<f32>
    %root = relay.constant dense<1.41421356> : tensor<f32>
    %1 = relay.nn.dense %p, %q : (tensor<4x64xf32>, tensor<32x64xf32>) -> tensor<4x32xf32>
    %2 = relay.divide %1, %root : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %3 = relay.erf %2 : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %4 = relay.add %3, %one : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %5 = relay.multiply %1, %half : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %6 = relay.multiply %5, %4 : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    byoc.yield %6 : tensor<4x32xf32>
  }
  func.return %0 : tensor<4x32xf32>
}
// CHECK-LABEL: func.func private @gelu
// CHECK:         dnnl.matmul %x, %w {transpose_b = true, post_ops = [#dnnl.eltwise<gelu_erf>]}

// -----

// A result that is an input, or is returned twice, gets memory of its own.
func.func private @copies(%x: tensor<1x64x64x64xf32>) -> (tensor<1x64x64x64xf32>, tensor<1x64x64x64xf32>, tensor<64x4096xf32>) attributes {byoc.compiler = "dnnl"} {
  %0 = relay.nn.relu %x : (tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  %1 = relay.reshape %x {newshape = [64, 4096]} : (tensor<1x64x64x64xf32>) -> tensor<64x4096xf32>
  func.return %0, %0, %1 : tensor<1x64x64x64xf32>, tensor<1x64x64x64xf32>, tensor<64x4096xf32>
}
// CHECK-LABEL: func.func private @copies
// CHECK-NEXT:    %[[R:.*]] = dnnl.eltwise %x {algorithm = "relu"}
// CHECK-NEXT:    %[[V:.*]] = dnnl.view %x
// CHECK-NEXT:    %[[A:.*]] = dnnl.reorder %[[R]]
// CHECK-NEXT:    %[[B:.*]] = dnnl.reorder %[[V]]
// CHECK-NEXT:    func.return %[[R]], %[[A]], %[[B]]

// -----

// Other functions are left alone.
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @host
// CHECK-NEXT:    relay.nn.relu
