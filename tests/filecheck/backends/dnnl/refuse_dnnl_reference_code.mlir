// RUN: byoc-opt %s -p 'refuse-dnnl-reference-code' | filecheck %s

func.func private @fast(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func private @fast
// CHECK-NEXT:    dnnl.eltwise %x
