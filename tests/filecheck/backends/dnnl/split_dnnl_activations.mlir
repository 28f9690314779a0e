// RUN: byoc-opt %s -p 'split-dnnl-activations{activation=loop}' | filecheck %s
// RUN: byoc-opt %s -p 'split-dnnl-activations{activation=post_op}' | filecheck %s --check-prefix KEPT

func.func private @r(%x: tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.eltwise<swish, 1.0>]} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.convolution %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.eltwise<swish, 2.0>]} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  func.return %1 : tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
}
// CHECK:       %[[A:.*]] = dnnl.convolution %x, %w {strides = [1, 1]
// CHECK-NOT:   swish, 1.0
// CHECK:       %[[B:.*]] = dnnl.activation %[[A]] {{.*}}algorithm = "swish"
// Our own code has no factor.
// CHECK:       dnnl.convolution %[[B]], {{.*}}#dnnl.eltwise<swish, 2.0, 0.0>

// KEPT:        dnnl.convolution %x, {{.*}}#dnnl.eltwise<swish, 1.0, 0.0>
// KEPT-NOT:    dnnl.activation

// Numbers of bf16 are rounded in between.
func.func private @rounded(%x: tensor<1x16x8x8xbf16, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xbf16, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xbf16>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.eltwise<swish, 1.0>]} : (tensor<1x16x8x8xbf16, #dnnl.layout<"acdb">>, tensor<16x16x3x3xbf16>) -> tensor<1x16x8x8xbf16, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x16x8x8xbf16, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @rounded
// CHECK:       dnnl.convolution {{.*}} -> tensor<1x16x8x8xbf16
// CHECK:       dnnl.activation {{.*}}algorithm = "swish"
