// RUN: byoc-opt --backend %backends %s -p 'merge-composite{targets=alpha,beta}' | filecheck %s

// MC-3: the form of a composite. MC-4: optional parts change the origin, not the name.
// MC-9: what a wildcard matched is a parameter, be it a constant or not.
// CHECK-LABEL: func.func @with_relu
func.func @with_relu(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK-NEXT: %b = relay.constant
  %b = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // CHECK-NEXT: %{{.*}} = byoc.composite "alpha.conv2d_bias" from "nn.conv2d_nn.bias_add_nn.relu_" (%{{.*}} = %x : tensor<1x3x8x8xf32>, %{{.*}} = %w : tensor<4x3x3x3xf32>, %{{.*}} = %b : tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK-NEXT: relay.nn.conv2d
  // CHECK-NEXT: relay.nn.bias_add
  // CHECK-NEXT: [[RELU:%.*]] = relay.nn.relu
  // CHECK-NEXT: byoc.yield [[RELU]] : tensor<1x4x6x6xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: func.return
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %2 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %2 : tensor<1x4x6x6xf32>
}

// CHECK-LABEL: func.func @without_relu
func.func @without_relu(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %b = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // CHECK: byoc.composite "alpha.conv2d_bias" from "nn.conv2d_nn.bias_add_"
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  func.return %1 : tensor<1x4x6x6xf32>
}

// MC-1: earlier rows of the table first. MC-7, MC-8: the check sees the original ops; a refused
// match frees them for later rows, and the reason is kept.
// CHECK-LABEL: func.func @refused
func.func @refused(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK-NEXT: byoc.composite "alpha.conv2d_any" from "nn.conv2d_nn.bias_add_"
  // CHECK: relay.nn.relu %{{.*}} {byoc.refused = ["alpha.conv2d_bias: bias is not a constant"]}
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %2 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %2 : tensor<1x4x6x6xf32>
}

// The first result of batch_norm, as the TVM course has it.
// CHECK-LABEL: func.func @batch_norm
func.func @batch_norm(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %s: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK-NEXT: %[[R:.*]] = byoc.composite "alpha.conv2d_bn_relu" from "nn.conv2d_nn.batch_norm_TupleGetItem0_nn.relu_" (%{{.*}} = %x : tensor<1x3x8x8xf32>, %{{.*}} = %w : tensor<4x3x3x3xf32>, %{{.*}} = %s : tensor<4xf32>)
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1, %2, %3 = relay.nn.batch_norm %0, %s, %s, %s, %s : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>)
  %4 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %4 : tensor<1x4x6x6xf32>
}

// PL-11: a value that is used outside may not be inside of a match, even if all users meet again.
// CHECK-LABEL: func.func @batch_norm_leaves
func.func @batch_norm_leaves(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %s: tensor<4xf32>) -> (tensor<1x4x6x6xf32>, tensor<4xf32>) {
  // CHECK: byoc.composite "alpha.conv2d_any" from "nn.conv2d_nn.batch_norm_"
  // CHECK-NOT: alpha.conv2d_bn_relu
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1, %2, %3 = relay.nn.batch_norm %0, %s, %s, %s, %s : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>)
  %4 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %4, %2 : tensor<1x4x6x6xf32>, tensor<4xf32>
}

// The blog's conv2d -> anything: the origin tells what.
// CHECK-LABEL: func.func @anything
func.func @anything(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %r: tensor<1x4x6x6xf32>) -> (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) {
  // CHECK-NEXT: byoc.composite "alpha.conv2d_any" from "nn.conv2d_add_" (%{{.*}} = %x : tensor<1x3x8x8xf32>, %{{.*}} = %w : tensor<4x3x3x3xf32>, %{{.*}} = %r : tensor<1x4x6x6xf32>)
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.add %r, %0 : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  // CHECK: byoc.composite "alpha.conv2d_any" from "nn.conv2d_nn.relu_"
  %2 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %3 = relay.nn.relu %2 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %1, %3 : tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>
}

// MC-9: what is_constant matched is embedded, and not kept outside for nothing.
// CHECK-LABEL: func.func @embedded
func.func @embedded(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: byoc.composite "alpha.scaled" from "tanh_multiply_" (%{{.*}} = %x : tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: relay.constant dense<2.000000e+00>
  %c = relay.constant dense<2.0> : tensor<f32>
  %0 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %c, %0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// MC-10: two identical sub-graphs are two composites. The second backend gets what is left.
// CHECK-LABEL: func.func @parallel
func.func @parallel(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: byoc.composite "beta.swish" from "sigmoid_multiply_" (%{{.*}} = %x : tensor<4xf32>)
  %0 = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.multiply %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// MC-6: outlined regions are left alone. MC-5: so are composites.
// CHECK-LABEL: func.func private @taken
func.func private @taken(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"} {
  // CHECK-NOT: beta.swish
  %0 = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @inside
func.func @inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: byoc.composite "npu.swish"
  // CHECK-NOT: beta.swish
  %0 = byoc.composite "npu.swish" from "" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %1 = relay.sigmoid %a : (tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.multiply %1, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}

// Each block is a scope of its own; dead ops (PG-14) are no roots.
// CHECK-LABEL: func.func @nested
func.func @nested(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: relay.sigmoid
  %s = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: scf.if
  %r = scf.if %c -> (tensor<4xf32>) {
    // CHECK-NEXT: relay.multiply
    %0 = relay.multiply %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    // CHECK: else
    // CHECK-NEXT: byoc.composite "beta.swish"
    %1 = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.multiply %1, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: relay.multiply
    // CHECK: scf.yield
    // CHECK-NOT: beta.swish
    %3 = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %4 = relay.multiply %3, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
