// RUN: byoc-opt %s -p 'fold-dnnl-factors' | filecheck %s

// (clip(x * 2 + 1, -4, 8) + r) * 0.5 + 3 is clip(x + 3.5, 1, 7) + r * 0.5.
func.func private @factor(%x: tensor<1x1x4x4xui8>, %r: tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xui8> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<1> : tensor<1x1x1x1xi8>
  %b = relay.constant dense<[1.0]> : tensor<1xf32>
  %s = relay.constant dense<[2.0]> : tensor<1xf32>
  %p = relay.constant dense<[0]> : tensor<1xi32>
  %0 = dnnl.quantized_convolution %x, %w, %b, %s, %p, %p, %r {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<clip, -4.0, 8.0>, #dnnl.sum, #dnnl.eltwise<linear, 0.5, 3.0>, #dnnl.eltwise<relu>], element = ui8} : (tensor<1x1x4x4xui8>, tensor<1x1x1x1xi8>, tensor<1xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xui8>
  func.return %0 : tensor<1x1x4x4xui8>
}
// CHECK-LABEL: func.func private @factor
// CHECK-DAG:     %[[B:.*]] = relay.constant dense<3.500000e+00> : tensor<1xf32>
// CHECK-DAG:     %[[S:.*]] = relay.constant dense<1.000000e+00> : tensor<1xf32>
// CHECK:         dnnl.quantized_convolution %x, %{{.*}}, %[[B]], %[[S]], {{.*}}post_ops = [#dnnl.eltwise<clip, 1.0, 7.0>, #dnnl.sum<0.5>, #dnnl.eltwise<relu>]

// An addend that keeps its memory cannot be multiplied: the result is.
func.func private @binary(%x: tensor<1x1x4x4xui8>, %r: tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xui8> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<1> : tensor<1x1x1x1xi8>
  %b = relay.constant dense<[1.0]> : tensor<1xf32>
  %p = relay.constant dense<[0]> : tensor<1xi32>
  %0 = dnnl.quantized_convolution %x, %w, %b, %b, %p, %p, %r {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<clip, -4.0, 8.0>, #dnnl.binary<add>, #dnnl.eltwise<linear, 0.5, 3.0>], element = ui8} : (tensor<1x1x4x4xui8>, tensor<1x1x1x1xi8>, tensor<1xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xui8>
  func.return %0 : tensor<1x1x4x4xui8>
}
// CHECK-LABEL: func.func private @binary
// CHECK:         post_ops = [#dnnl.eltwise<clip, -4.0, 8.0>, #dnnl.binary<add>, #dnnl.eltwise<linear, 0.5, 3.0>]
