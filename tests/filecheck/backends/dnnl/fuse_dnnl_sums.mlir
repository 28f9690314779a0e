// RUN: byoc-opt %s --split-input-file -p 'fuse-dnnl-sums' | filecheck %s

// The first result dies in the sum, which takes over its memory.
func.func private @dies(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = dnnl.convolution %x, %w, %0 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.binary<add>, #dnnl.eltwise<relu>]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return %1 : tensor<1x8x4x4xf32>
}
// CHECK-LABEL: func.func private @dies
// CHECK:         post_ops = [#dnnl.sum, #dnnl.eltwise<relu>]

// -----

// Not where the addend is an input, or is read again.
func.func private @kept(%x: tensor<1x8x4x4xf32>, %y: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.convolution %x, %w, %y {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.binary<add>]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %1 = dnnl.convolution %x, %w, %0 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.binary<add>]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = dnnl.binary %0, %1 {algorithm = "add"} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return %2 : tensor<1x8x4x4xf32>
}
// CHECK-LABEL: func.func private @kept
// CHECK-NOT:     #dnnl.sum
// CHECK:         func.return

// -----

// A region of another backend is left alone.
func.func private @other(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> attributes {byoc.compiler = "other"} {
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = dnnl.convolution %x, %w, %0 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.binary<add>]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return %1 : tensor<1x8x4x4xf32>
}
// CHECK-LABEL: func.func private @other
// CHECK-NOT:     #dnnl.sum
// CHECK:         func.return
