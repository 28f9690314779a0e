// RUN: not byoc-opt %s -p 'select-dnnl-primitives' 2>&1 | filecheck %s

// CHECK: dnnl.convolution: algorithm is 'f4x3', which is not written for it in these layouts; accepted are direct, winograd, implicit_gemm
func.func private @strides(%x: tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3"} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
}
