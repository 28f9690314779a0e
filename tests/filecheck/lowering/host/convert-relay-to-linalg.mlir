// RUN: byoc-opt %s --split-input-file -p convert-relay-to-linalg | filecheck %s

// Unsigned integers are computed with as signless ones; the op knows the sign.
// CHECK-LABEL: func.func @unsigned
func.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  // CHECK: builtin.unrealized_conversion_cast %{{.*}} : ui8 to i8
  // CHECK: arith.divui
  // CHECK: builtin.unrealized_conversion_cast %{{.*}} : i8 to ui8
  %0 = relay.divide %x, %y : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %0 : tensor<4xui8>
}

// -----

// A dimension of one is read at its only place.
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> tensor<2x3xf32> {
  // CHECK: linalg.generic {{.*}}affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>
  // CHECK: arith.addf {{.*}} fastmath<contract>
  %0 = relay.add %x, %y : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}

// -----

// Padding is a filled tensor with the data inserted; without padding there is none.
// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  // CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 1, 1] [1, 3, 8, 8] [1, 1, 1, 1]
  // CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"], doc = "conv2d"
  // CHECK: arith.mulf {{.*}} fastmath<reassoc,contract>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  func.return %0 : tensor<1x4x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @no_padding
func.func @no_padding(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  // CHECK-NOT: tensor.insert_slice
  // CHECK: doc = "conv2d"
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  func.return %0 : tensor<1x4x8x8xf32>
}

// -----

// Moving elements is a view where it can be.
// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<6x4xf32>, tensor<2x3x2xf32>) {
  // CHECK: tensor.reshape
  // CHECK: tensor.extract_slice %{{.*}}[0, 0, 1] [2, 3, 2] [1, 1, 1]
  // CHECK-NOT: linalg.generic
  %0 = relay.reshape %x {newshape = [6, 4]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = relay.strided_slice %x {begin = [0, 0, 1], end = [2, 3, 3], strides = [1, 1, 1]} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  func.return %0, %1 : tensor<6x4xf32>, tensor<2x3x2xf32>
}

// -----

// Regions of a backend stay as they are.
// CHECK-LABEL: func.func private @npu_main_0
func.func private @npu_main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"} {
  // CHECK: relay.nn.relu
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

// Small windows are written out; large ones are folded along one dimension after the other.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x3x8x8xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x3x6x6xf32>) {
  // CHECK-COUNT-4: tensor.extract_slice %{{.*}} [1, 3, 4, 4] [1, 1, 2, 2] : tensor<1x3x8x8xf32> to tensor<1x3x4x4xf32>
  // CHECK: linalg.generic
  // CHECK-COUNT-3: tensor.extract_slice %{{.*}} : tensor<1x3x8x8xf32> to tensor<1x3x6x8xf32>
  // CHECK: %[[COLUMNS:.*]] = linalg.generic
  // CHECK-COUNT-3: tensor.extract_slice %[[COLUMNS]]{{.*}} : tensor<1x3x6x8xf32> to tensor<1x3x6x6xf32>
  // CHECK: linalg.generic
  %0 = relay.nn.max_pool2d %x {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1], ceil_mode = false} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  %1 = relay.nn.max_pool2d %x {pool_size = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], ceil_mode = false} : (tensor<1x3x8x8xf32>) -> tensor<1x3x6x6xf32>
  func.return %0, %1 : tensor<1x3x4x4xf32>, tensor<1x3x6x6xf32>
}

// -----

// Windows of f16 convert what they read, unless many overlap: then the image is converted first.
// CHECK-LABEL: func.func @pools
// CHECK-NOT:     linalg.generic
// CHECK:         tensor.extract_slice %x{{.*}} tensor<1x3x32x32xf16>
// CHECK:         linalg.generic
// CHECK-COUNT-4: arith.extf
// CHECK:         func.return
// CHECK-LABEL: func.func @large
// CHECK-NOT:     tensor.extract_slice
// CHECK:         arith.extf
// CHECK:         tensor<1x3x32x32xf32>
func.func @pools(%x: tensor<1x3x32x32xf16>) -> tensor<1x3x16x16xf16> {
  %0 = relay.nn.avg_pool2d %x {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x32x32xf16>) -> tensor<1x3x16x16xf16>
  func.return %0 : tensor<1x3x16x16xf16>
}
func.func @large(%x: tensor<1x3x32x32xf16>) -> tensor<1x3x24x24xf16> {
  %0 = relay.nn.avg_pool2d %x {pool_size = [9, 9], strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x32x32xf16>) -> tensor<1x3x24x24xf16>
  func.return %0 : tensor<1x3x24x24xf16>
}

// -----

// A search finds the extreme value, then its position, and converts what it reads in its vectors.
// CHECK-LABEL: func.func @search
// CHECK:         %[[E:.*]] = linalg.generic {{.*}}ins(%x : tensor<3x32xf16>) outs(%{{.*}} : tensor<32xf32>)
// CHECK:         linalg.generic {{.*}}ins(%x, %{{.*}} : tensor<3x32xf16>, tensor<{{.*}}xf32>) outs(%{{.*}} : tensor<32xi32>)
func.func @search(%x: tensor<3x32xf16>) -> tensor<1x32xi64> {
  %0 = relay.argmax %x {axis = [0], keepdims = true} : (tensor<3x32xf16>) -> tensor<1x32xi64>
  func.return %0 : tensor<1x32xi64>
}
