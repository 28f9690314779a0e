// RUN: byoc-opt %s -p 'split-dnnl-post-ops' | filecheck %s

// oneDNN would add the bias of a deconvolution one number at a time.
func.func private @bias(%x: tensor<1x16x8x8xf32>, %w: tensor<16x8x2x2xf32>, %b: tensor<8xf32>) -> tensor<1x8x16x16xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.deconvolution %x, %w, %b {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<relu>]} : (tensor<1x16x8x8xf32>, tensor<16x8x2x2xf32>, tensor<8xf32>) -> tensor<1x8x16x16xf32>
  func.return %0 : tensor<1x8x16x16xf32>
}
// CHECK-LABEL: func.func private @bias
// CHECK:         %[[V:.*]] = dnnl.view %b : (tensor<8xf32>) -> tensor<1x8x1x1xf32>
// CHECK-NEXT:    %[[D:.*]] = dnnl.deconvolution %x, %w {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]}
// CHECK-NEXT:    dnnl.binary %[[D]], %[[V]] {{.*}}algorithm = "add"
// CHECK-SAME:    post_ops = [#dnnl.eltwise<relu>]

// What the library has fast code for stays.
func.func private @fast(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<relu>]} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func private @fast
// CHECK-NEXT:    dnnl.convolution {{.*}}post_ops = [#dnnl.eltwise<relu>]
// CHECK-NEXT:    func.return
