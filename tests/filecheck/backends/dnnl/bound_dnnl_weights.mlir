// RUN: byoc-opt %s -p 'bound-dnnl-weights' | filecheck %s

// Any memory, and enough of it. Where it is short, times decide: tests/unit/backends/dnnl/test_bound_dnnl_weights.py.
func.func private @large(%x: tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>) -> tensor<1x128x56x56xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<128x128x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3"} : (tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>, tensor<128x128x3x3xf32>) -> tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>
}
func.func private @enough(%x: tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>) -> tensor<1x128x56x56xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl", byoc.weight_growth = 5.0 : f64} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<128x128x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3"} : (tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>, tensor<128x128x3x3xf32>) -> tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x128x56x56xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @large
// CHECK:         dnnl.convolution %x, %w {{.*}}algorithm = "f4x3"}
// CHECK-LABEL: func.func private @enough
// CHECK:         dnnl.convolution %x, %w {{.*}}algorithm = "f4x3"}
