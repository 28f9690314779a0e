// RUN: byoc-opt %s --backend %backends -p 'to-mixed-precision{type=bf16 targets=gamma exact=second}' | filecheck %s
// RUN: byoc-opt %s --backend %backends -p 'split-products{targets=gamma exact=second}' | filecheck %s

// The products of nodes that are named stay in f32.
// CHECK:       byoc.kept_float = {second = "asked for"}
// CHECK-LABEL: func.func @main
// CHECK:         relay.nn.conv2d {{.*}}xbf16>) -> tensor<1x2x4x4xf32>
// CHECK:         relay.nn.conv2d %{{.*}}, %w {{.*}} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>)
func.func @main(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("first")
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("second")
  func.return %1 : tensor<1x2x4x4xf32>
}
