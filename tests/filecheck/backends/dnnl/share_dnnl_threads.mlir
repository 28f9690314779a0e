// RUN: byoc-opt %s -p 'share-dnnl-threads{threads=2}' | filecheck %s
// RUN: byoc-opt %s -p 'share-dnnl-threads' | filecheck %s --check-prefix ONE

// A few numbers are done before a second thread would have started; a view does not run at all.
func.func private @short(%x: tensor<1x16x2x2xf32>) -> tensor<16x4xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32>
  %1 = dnnl.activation %0 {algorithm = "swish"} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32>
  %2 = dnnl.view %1 : (tensor<1x16x2x2xf32>) -> tensor<16x4xf32>
  func.return %2 : tensor<16x4xf32>
}
// CHECK-LABEL: func.func private @short
// CHECK-NEXT:    dnnl.eltwise %x {algorithm = "relu", threads = 1}
// CHECK-NEXT:    dnnl.activation {{.*}} {algorithm = "swish", threads = 1}
// CHECK-NEXT:    dnnl.view %{{.*}} : (

func.func private @long(%x: tensor<1x64x256x256xf32>) -> tensor<1x64x256x256xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.activation %x {algorithm = "swish"} : (tensor<1x64x256x256xf32>) -> tensor<1x64x256x256xf32>
  func.return %0 : tensor<1x64x256x256xf32>
}
// CHECK-LABEL: func.func private @long
// CHECK-NEXT:    dnnl.activation %x {algorithm = "swish"}

// ONE-NOT:     threads = 1
