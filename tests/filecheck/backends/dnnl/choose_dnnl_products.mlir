// RUN: byoc-opt %s -p 'choose-dnnl-products{threads=2}' | filecheck %s

// Which way is the fastest depends on the machine.
func.func private @constant(%x: tensor<33x64xf32>) -> tensor<33x48xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<48x64xf32>
  %b = relay.constant #relay.weight<"b", "00000000000000000000000000000002"> : tensor<1x48xf32>
  %0 = dnnl.matmul %x, %w, %b {transpose_b = true} : (tensor<33x64xf32>, tensor<48x64xf32>, tensor<1x48xf32>) -> tensor<33x48xf32>
  func.return %0 : tensor<33x48xf32>
}
// CHECK-LABEL: func.func private @constant
// CHECK:         {{dnnl.inner_product %x, %w, |dnnl.matmul %x, %w, %b .*transpose_b = true}}

// Weights that come at run time are read as they are.
func.func private @input(%x: tensor<33x64xf32>, %w: tensor<64x48xf32>) -> tensor<33x48xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.matmul %x, %w : (tensor<33x64xf32>, tensor<64x48xf32>) -> tensor<33x48xf32>
  func.return %0 : tensor<33x48xf32>
}
// CHECK-LABEL: func.func private @input
// CHECK-NEXT:    dnnl.matmul %x, %w : (
