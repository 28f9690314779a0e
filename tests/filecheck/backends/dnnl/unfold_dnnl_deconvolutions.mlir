// RUN: byoc-opt %s -p 'unfold-dnnl-deconvolutions' | filecheck %s

// Each place of the result reads one pixel: places are channels, then they change places.
func.func private @whole(%x: tensor<1x2x6x5xbf16>) -> tensor<1x1x12x10xbf16> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]], [[[5.0, 6.0], [7.0, 8.0]]]]> : tensor<2x1x2x2xbf16>
  %b = relay.constant dense<[1.5]> : tensor<1xf32>
  %0 = dnnl.deconvolution %x, %w, %b {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<relu>]} : (tensor<1x2x6x5xbf16>, tensor<2x1x2x2xbf16>, tensor<1xf32>) -> tensor<1x1x12x10xbf16>
  func.return %0 : tensor<1x1x12x10xbf16>
}
// CHECK-LABEL: func.func private @whole
// CHECK:         %[[B:.*]] = relay.constant dense<1.500000e+00> : tensor<4xf32>
// CHECK-NEXT:    %[[C:.*]] = dnnl.convolution %x, %{{.*}}, %[[B]] {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<relu>]} : (tensor<1x2x6x5xbf16>, tensor<4x2x1x1xbf16>, tensor<4xf32>) -> tensor<1x4x6x5xbf16>
// CHECK-NEXT:    %[[P:.*]] = dnnl.pixel_shuffle %[[C]] {block = [2, 2]} : {{.*}} -> tensor<1x1x12x10xbf16>
// CHECK-NEXT:    func.return %[[P]]

// Windows that overlap, numbers of f32, which the library has fast code for, and computed weights.
func.func private @kept(%x: tensor<1x2x6x5xbf16>, %y: tensor<1x2x6x5xf32>, %v: tensor<2x1x2x2xbf16>) -> (tensor<1x1x11x9xbf16>, tensor<1x1x12x10xf32>, tensor<1x1x12x10xbf16>) attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<0.5> : tensor<2x1x2x2xbf16>
  %u = relay.constant dense<0.5> : tensor<2x1x2x2xf32>
  %0 = dnnl.deconvolution %x, %w {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1]} : (tensor<1x2x6x5xbf16>, tensor<2x1x2x2xbf16>) -> tensor<1x1x11x9xbf16>
  %1 = dnnl.deconvolution %y, %u {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x6x5xf32>, tensor<2x1x2x2xf32>) -> tensor<1x1x12x10xf32>
  %2 = dnnl.deconvolution %x, %v {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x6x5xbf16>, tensor<2x1x2x2xbf16>) -> tensor<1x1x12x10xbf16>
  func.return %0, %1, %2 : tensor<1x1x11x9xbf16>, tensor<1x1x12x10xf32>, tensor<1x1x12x10xbf16>
}
// CHECK-LABEL: func.func private @kept
// CHECK-COUNT-3: dnnl.deconvolution
// CHECK-NEXT:    func.return
