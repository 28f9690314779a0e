// RUN: byoc-opt %s --split-input-file -p 'convert-relay-to-dnnl,split-dnnl-post-ops,fuse-dnnl-sums,plan-dnnl-layouts' | filecheck %s

// Which layout wins depends on the machine; that it is one for the whole chain does not, nor that
// the residual dies in the last convolution, which therefore adds in its memory.
func.func private @r(%x: tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x32x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %2 = byoc.composite "dnnl.conv2d_sum" from "" (%p = %1 : tensor<1x32x28x28xf32>, %q = %w : tensor<32x32x3x3xf32>, %s = %0 : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> {
    %3 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
    %4 = relay.add %3, %s : (tensor<1x32x28x28xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
    byoc.yield %4 : tensor<1x32x28x28xf32>
  }
  func.return %2 : tensor<1x32x28x28xf32>
}
// CHECK-LABEL: func.func private @r
// CHECK:         %[[A:.*]] = dnnl.convolution {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"[[L:.*]]">>
// CHECK-NEXT:    %[[B:.*]] = dnnl.convolution %[[A]], {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"[[L]]">>
// CHECK-NEXT:    %[[C:.*]] = dnnl.convolution %[[B]], %w, %[[A]] {{.*}}post_ops = [#dnnl.sum]
// CHECK-NEXT:    %[[D:.*]] = dnnl.reorder %[[C]] : {{.*}} -> tensor<1x32x28x28xf32>
// CHECK-NEXT:    func.return %[[D]]

// -----

// No addition in place where the addend is an input, or is read again.
func.func private @kept(%x: tensor<1x32x28x28xf32>, %y: tensor<1x32x28x28xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.conv2d_sum" from "" (%p = %x : tensor<1x32x28x28xf32>, %q = %w : tensor<32x32x3x3xf32>, %s = %y : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> {
    %3 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
    %4 = relay.add %3, %s : (tensor<1x32x28x28xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
    byoc.yield %4 : tensor<1x32x28x28xf32>
  }
  %1 = byoc.composite "dnnl.conv2d_sum" from "" (%p = %x : tensor<1x32x28x28xf32>, %q = %w : tensor<32x32x3x3xf32>, %s = %0 : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> {
    %3 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
    %4 = relay.add %3, %s : (tensor<1x32x28x28xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
    byoc.yield %4 : tensor<1x32x28x28xf32>
  }
  %2 = relay.add %0, %1 : (tensor<1x32x28x28xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  func.return %2 : tensor<1x32x28x28xf32>
}
// CHECK-LABEL: func.func private @kept
// CHECK-NOT:     #dnnl.sum
// CHECK:         func.return

// -----

// oneDNN would add the bias of a deconvolution one number at a time.
func.func private @bias(%x: tensor<1x16x8x8xf32>) -> tensor<1x8x16x16xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x8x2x2xf32>
  %b = relay.constant #relay.weight<"b", "00000000000000000000000000000002"> : tensor<8xf32>
  %0 = byoc.composite "dnnl.conv2d_transpose_bias_relu" from "" (%p = %x : tensor<1x16x8x8xf32>, %q = %w : tensor<16x8x2x2xf32>, %c = %b : tensor<8xf32>) -> tensor<1x8x16x16xf32> {
    %1 = relay.nn.conv2d_transpose %p, %q {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1], output_padding = [0, 0]} : (tensor<1x16x8x8xf32>, tensor<16x8x2x2xf32>) -> tensor<1x8x16x16xf32>
    %2 = relay.nn.bias_add %1, %c : (tensor<1x8x16x16xf32>, tensor<8xf32>) -> tensor<1x8x16x16xf32>
    %3 = relay.nn.relu %2 : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    byoc.yield %3 : tensor<1x8x16x16xf32>
  }
  func.return %0 : tensor<1x8x16x16xf32>
}
// CHECK-LABEL: func.func private @bias
// CHECK:         %[[V:.*]] = dnnl.view %b : (tensor<8xf32>) -> tensor<1x8x1x1xf32>
// CHECK:         %[[D:.*]] = dnnl.deconvolution %{{.*}}, %w {{.*}}(tensor<1x16x8x8xf32{{.*}}>, tensor<16x8x2x2xf32>) ->
// CHECK:         dnnl.binary %[[D]], {{.*}}algorithm = "add"{{.*}}post_ops = [#dnnl.eltwise<relu
