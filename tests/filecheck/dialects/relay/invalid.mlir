// RUN: byoc-opt %s --split-input-file --verify-diagnostics | filecheck %s

func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  %0 = relay.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: shapes [2], [3] do not broadcast

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2xi32>) {
  %0 = relay.multiply %x, %y : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}
// CHECK: relay.multiply: expected operands of one element type, found f32 and i32

// -----

func.func @f(%x: tensor<2xf32>) {
  %0 = relay.exp %x : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: relay.exp: result #0 has type tensor<3xf32>, inferred tensor<2xf32>

// -----

func.func @f(%c: tensor<2xf32>, %x: tensor<2xf32>) {
  %0 = relay.where %c, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}
// CHECK: relay.where: the condition must be of i1, found tensor<2xf32>

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x2xf32>) {
  %0 = relay.nn.dense %x, %w : (tensor<2x3xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: relay.nn.dense: expected data [..., in] and weight [units, in]

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) {
  %0 = relay.nn.matmul %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: relay.nn.matmul: inner dimensions 3 and 2

// -----

func.func @f(%x: tensor<2x3xf32>, %b: tensor<2xf32>) {
  %0 = relay.nn.bias_add %x, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: relay.nn.bias_add: bias must be tensor<3xf32>, found tensor<2xf32>

// -----

func.func @f(%x: tensor<2x3xf32>, %b: tensor<3xf32>) {
  %0 = relay.nn.bias_add %x, %b {axis = 2} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: relay.nn.bias_add: axis is 2, accepted range is [-2, 1]

// -----

func.func @f(%x: tensor<1x4x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}
// CHECK: relay.nn.conv2d: 4 channels in 1 groups do not fit weight

// -----

func.func @f(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = relay.nn.conv2d %x, %w {strides = [0, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}
// CHECK: relay.nn.conv2d: strides must be 2 integers of at least 1, found [0, 1]

// -----

func.func @f(%x: tensor<1x4x2x2xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x2x2xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}
// CHECK: relay.nn.conv2d: a window of 3 (dilation 1) does not fit the 2 elements

// -----

func.func @f(%x: tensor<1x4x8xf32>) {
  %0 = relay.nn.max_pool2d %x {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}
// CHECK: relay.nn.max_pool2d: data must have rank 4, found tensor<1x4x8xf32>

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %0 = relay.sum %x {axis = [0, -2]} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: relay.sum: axis [0, -2] repeats a dimension

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %0 = relay.reshape %x {newshape = [4, -1]} : (tensor<2x3xf32>) -> tensor<4x1xf32>
  func.return
}
// CHECK: relay.reshape: newshape [4, -1] does not hold the 6 elements

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %0 = relay.transpose %x {axes = [0, 0]} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return
}
// CHECK: relay.transpose: axes [0, 0] is not a permutation of 0..1

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %0 = relay.squeeze %x {axis = [0]} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: relay.squeeze: dimension 0 of tensor<2x3xf32> is not 1

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  %0 = relay.concatenate %x, %y {axis = 1} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  func.return
}
// CHECK: relay.concatenate: tensor<2x3xf32> and tensor<3x3xf32> differ outside of axis 1

// -----

func.func @f(%x: tensor<5xf32>) {
  %0, %1 = relay.split %x {sections = [2, 2]} : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return
}
// CHECK: relay.split: sections [2, 2] do not add up to dimension 0

// -----

func.func @f(%x: tensor<5xf32>) {
  %0 = relay.strided_slice %x {begin = [0], end = [6], strides = [1]} : (tensor<5xf32>) -> tensor<6xf32>
  func.return
}
// CHECK: relay.strided_slice: slice 0:6:1 leaves dimension 0

// -----

func.func @f(%x: tensor<2xf32>) {
  %0 = relay.nn.pad %x {pad_width = [1]} : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: relay.nn.pad: pad_width must have 2 entries, found 1

// -----

func.func @f(%x: tensor<2xf32>) {
  %0 = relay.nn.pad %x {pad_width = [1, 1], pad_mode = "mirror"} : (tensor<2xf32>) -> tensor<4xf32>
  func.return
}
// CHECK: relay.nn.pad: pad_mode is 'mirror', accepted are constant, edge, reflect and wrap

// -----

func.func @f() {
  %0 = relay.constant #relay.weight<"w", "00"> : tensor<?xf32>
  func.return
}
// CHECK: relay.constant: a constant has a static shape
