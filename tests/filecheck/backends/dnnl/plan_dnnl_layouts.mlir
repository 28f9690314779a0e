// RUN: byoc-opt %s -p 'plan-dnnl-layouts' | filecheck %s
// RUN: byoc-opt %s -p 'plan-dnnl-layouts{layout=channels_last}' | filecheck %s --check-prefix LAST
// RUN: byoc-opt %s -p 'plan-dnnl-layouts{layout=plain}' | filecheck %s --check-prefix PLAIN

// Which layout wins depends on the machine; that it is one for the whole chain does not.
func.func private @chain(%x: tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x32x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %1 = dnnl.convolution %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %2 = dnnl.convolution %1, %w, %0 {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.sum]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  func.return %2 : tensor<1x32x28x28xf32>
}
// CHECK-LABEL: func.func private @chain
// CHECK:         %[[A:.*]] = dnnl.convolution {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"[[L:.*]]">>
// CHECK-NEXT:    %[[B:.*]] = dnnl.convolution %[[A]], {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"[[L]]">>
// CHECK-NEXT:    %[[C:.*]] = dnnl.convolution %[[B]], %w, %[[A]] {{.*}}post_ops = [#dnnl.sum]
// CHECK-NEXT:    %[[D:.*]] = dnnl.reorder %[[C]] : {{.*}} -> tensor<1x32x28x28xf32>
// CHECK-NEXT:    func.return %[[D]]

// LAST:          %[[X:.*]] = dnnl.reorder %x : (tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>
// LAST-NEXT:     dnnl.convolution %[[X]], %w {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>

// PLAIN-NOT:     #dnnl.layout

// Numbers become those of another type in the layout in which they are.
func.func private @converted(%x: tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xbf16> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x32x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %1 = dnnl.convert %0 {element = bf16} : (tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xbf16>
  func.return %1 : tensor<1x32x28x28xbf16>
}
// LAST-LABEL: func.func private @converted
// LAST:          %[[A:.*]] = dnnl.convolution {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>
// LAST-NEXT:     dnnl.convert %[[A]] {element = bf16} : (tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>) -> tensor<1x32x28x28xbf16, #dnnl.layout<"acdb">>
