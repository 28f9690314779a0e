// RUN: byoc-opt %s -p fold-constants,simplify,fold-batch-norm --print-debuginfo | filecheck %s

// every ONNX node is still found after its op was merged
func.func @main(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %w = relay.constant dense<[[[[1.0]]]]> : tensor<1x1x1x1xf32>
  %0 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 1, 1]} : (tensor<1x1x2x2xf32>) -> tensor<1x1x4x4xf32> loc("pad")
  %1 = relay.nn.conv2d %0, %w {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32> loc("conv")
  %c = relay.constant dense<[4.0]> : tensor<1xf32>
  %2, %3, %4 = relay.nn.batch_norm %1, %c, %c, %c, %c : (tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1xf32>) loc("norm")
  %5 = relay.nn.relu %2 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> loc("relu")
  %6 = relay.clip %5 {a_min = 0.0, a_max = 6.0} : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> loc("clip")
  func.return %6 : tensor<1x1x2x2xf32>
}
// CHECK:      relay.nn.conv2d {{.*}} loc(fused["pad", "conv"])
// CHECK:      relay.nn.bias_add {{.*}} loc("norm")
// CHECK-NEXT: relay.clip {{.*}} loc(fused["relu", "clip"])
