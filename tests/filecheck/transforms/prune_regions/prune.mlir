// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha},prune-regions{heavy="nn.conv2d"}' | filecheck %s --check-prefixes CHECK,HEAVY
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha},prune-regions{min-work=100}' | filecheck %s --check-prefixes CHECK,WORK

// CHECK-LABEL: func.func @kept
// CHECK: func.call @alpha_kept_0
func.func @kept(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return %0 : tensor<1x4x6x6xf32>
}

// CHECK-LABEL: func.func @small
// HEAVY-NEXT: relay.nn.relu %x {byoc.reason = "demoted: the region has none of nn.conv2d"}
// WORK-NEXT: relay.nn.relu %x {byoc.reason = "demoted: the region does about 4 operations, less than 100"}
// CHECK-NOT: @alpha_small_0
func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
