// RUN: byoc-opt %s -p 'plan-dnnl-layouts{layout=blocked_8}' | filecheck %s
// RUN: byoc-opt %s -p 'plan-dnnl-layouts{layout=channels_last}' | filecheck %s --check-prefix LAST
// RUN: byoc-opt %s -p 'plan-dnnl-layouts{layout=plain}' | filecheck %s --check-prefix PLAIN

// Which layout wins where none is asked for, and which the first convolution reads, depends on times:
// tests/unit/backends/dnnl/test_plan_dnnl_layouts.py.
func.func private @chain(%x: tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x32x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %1 = dnnl.convolution %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %2 = dnnl.convolution %1, %w, %0 {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.sum]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>, tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  func.return %2 : tensor<1x32x28x28xf32>
}
// CHECK-LABEL: func.func private @chain
// CHECK:         %[[A:.*]] = dnnl.convolution {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"aBcd8b">>
// CHECK-NEXT:    %[[B:.*]] = dnnl.convolution %[[A]], {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"aBcd8b">>
// CHECK-NEXT:    %[[C:.*]] = dnnl.convolution %[[B]], %w, %[[A]] {{.*}}post_ops = [#dnnl.sum]
// CHECK-NEXT:    %[[D:.*]] = dnnl.reorder %[[C]] : {{.*}} -> tensor<1x32x28x28xf32>
// CHECK-NEXT:    func.return %[[D]]

// LAST:          %[[A:.*]] = dnnl.convolution {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>
// LAST-NEXT:     dnnl.convolution %[[A]], %w {{.*}} -> tensor<1x32x28x28xf32, #dnnl.layout<"acdb">>

// PLAIN-NOT:     #dnnl.layout
