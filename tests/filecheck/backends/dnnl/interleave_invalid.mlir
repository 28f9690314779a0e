// RUN: not byoc-opt %s -p 'select-dnnl-primitives' 2>&1 | filecheck %s

// CHECK: dnnl.convert: algorithm is 'interleave', found tensor<1x8x8x8xf32> to {{.*}}; accepted are a few f32 planes to bf16 in NHWC
func.func private @many(%x: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xbf16, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.convert %x {element = bf16, algorithm = "interleave"} : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xbf16, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x8x8x8xbf16, #dnnl.layout<"acdb">>
}
