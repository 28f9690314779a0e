// RUN: byoc-opt %s -p 'choose-dnnl-algorithms{convolution=f4x3}' | filecheck %s
// RUN: byoc-opt %s -p 'choose-dnnl-algorithms{convolution=direct}' | filecheck %s --check-prefix DIRECT
// RUN: byoc-opt %s -p 'choose-dnnl-algorithms{winograd=off}' | filecheck %s --check-prefix OFF

func.func private @r(%x: tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.convolution %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.eltwise<logistic>]} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  func.return %1 : tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
}
// It is not written for a sigmoid behind it; then it is the direct algorithm.
// CHECK:       dnnl.convolution %x, {{.*}}algorithm = "f4x3"
// CHECK:       dnnl.convolution
// CHECK-NOT:   algorithm = "f4x3"
// CHECK:       func.return

// The latency is written down.
// DIRECT:      dnnl.convolution %x, {{.*}}milliseconds = {{[0-9.]+}}
// DIRECT-NOT:  algorithm = "{{f|implicit|winograd}}
// DIRECT:      func.return

// OFF-NOT:     algorithm = "{{f|winograd}}
// OFF:         func.return
