// RUN: not byoc-opt %s -p 'select-dnnl-primitives' 2>&1 | filecheck %s

// CHECK: dnnl.normalized_concat: no code for tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x16x4x4xf32>; accepted are NHWC, for one image also blocks of channels, in multiples of 4 channels
func.func private @row_major(%x: tensor<1x8x4x4xf32>, %f: tensor<2x16xf32>) -> tensor<1x16x4x4xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.normalized_concat %x, %x, %f : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<2x16xf32>) -> tensor<1x16x4x4xf32>
  func.return %0 : tensor<1x16x4x4xf32>
}
