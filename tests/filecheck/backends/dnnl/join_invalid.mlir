// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func private @apart(%x: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, %y: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  // expected-error @below {{dnnl.join: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">> is no piece of tensor<1x16x4x4xf32, #dnnl.layout<"acdb">> along axis 1}}
  %0 = dnnl.join %x, %y {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
}

// -----

func.func private @twice(%x: tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32> attributes {byoc.compiler = "dnnl"} {
  // expected-error @below {{dnnl.join: tensor<1x8x4x4xf32> is joined more than once}}
  %0 = dnnl.join %x, %x {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  func.return %0 : tensor<1x16x4x4xf32>
}
