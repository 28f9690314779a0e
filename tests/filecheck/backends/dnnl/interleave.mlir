// RUN: byoc-opt %s -p 'select-dnnl-primitives' | filecheck %s

// Planes become pixels by code of our own, where the op says so.
func.func private @planes(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xbf16, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  // CHECK: dnnl.convert %x {{.*}}algorithm = "interleave"{{.*}}implementation = "interleave"
  %0 = dnnl.convert %x {element = bf16, algorithm = "interleave"} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xbf16, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x3x8x8xbf16, #dnnl.layout<"acdb">>
}
