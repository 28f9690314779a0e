// RUN: byoc-opt %s -p 'round-dnnl-results' | filecheck %s

// What somebody else reads in f32 is written in f32.
func.func private @both(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xbf16>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.softmax %x {axis = 1} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = dnnl.convert %0 {element = bf16} : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  func.return %0, %1 : tensor<8x16xf32>, tensor<8x16xbf16>
}
// CHECK-LABEL: func.func private @both
// CHECK:         %[[S:.*]] = dnnl.softmax %x {axis = 1} : (tensor<8x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT:    dnnl.convert %[[S]]

// The types may differ.
func.func private @written(%x: tensor<8x16xf32>, %s: tensor<16xf32>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.softmax %x {axis = 1, element = bf16} : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  %1 = dnnl.layer_normalization %x, %s, %s {epsilon = 1.0e-05 : f64, element = bf16} : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xbf16>
  func.return %0, %1 : tensor<8x16xbf16>, tensor<8x16xbf16>
}
// CHECK-LABEL: func.func private @written
// CHECK:         dnnl.softmax %x {axis = 1, element = bf16} : (tensor<8x16xf32>) -> tensor<8x16xbf16>
// CHECK-NEXT:    dnnl.layer_normalization
