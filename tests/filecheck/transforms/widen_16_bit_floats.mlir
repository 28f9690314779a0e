// RUN: byoc-opt %s --split-input-file -p widen-16-bit-floats | filecheck %s

// Between the model's input and output nothing is rounded.
func.func @chain(%x: tensor<4x8xf16>) -> tensor<4x2xf16> {
  %w = relay.constant dense<0.5> : tensor<2x8xf16>
  %0 = relay.nn.dense %x, %w : (tensor<4x8xf16>, tensor<2x8xf16>) -> tensor<4x2xf16>
  %1 = relay.nn.relu %0 : (tensor<4x2xf16>) -> tensor<4x2xf16>
  %2 = relay.tanh %1 : (tensor<4x2xf16>) -> tensor<4x2xf16>
  func.return %2 : tensor<4x2xf16>
}
// CHECK-LABEL: func.func @chain(%x: tensor<4x8xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:    %[[X:.*]] = relay.cast %x {dtype = f32}
// CHECK:         %[[W:.*]] = relay.constant dense<5.000000e-01> : tensor<2x8xf32>
// CHECK-NEXT:    %[[D:.*]] = relay.nn.dense %[[X]], %[[W]] : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.nn.relu %[[D]]
// CHECK-NEXT:    %[[T:.*]] = relay.tanh %[[R]]
// CHECK-NEXT:    %[[Y:.*]] = relay.cast %[[T]] {dtype = f16}
// CHECK-NEXT:    func.return %[[Y]]

// -----

// The model's own casts round; a cast to f32 is nothing.
func.func @casts(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.exp %x : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = relay.cast %y {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %2 = relay.add %0, %1 : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %3 = relay.cast %2 {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %[[X:.*]] = relay.cast %x {dtype = f32}
// CHECK-NEXT:    %[[E:.*]] = relay.exp %[[X]]
// CHECK-NEXT:    %[[Y:.*]] = relay.cast %y {dtype = bf16}
// CHECK-NEXT:    %[[Z:.*]] = relay.cast %[[Y]] {dtype = f32}
// CHECK-NEXT:    %[[S:.*]] = relay.add %[[E]], %[[Z]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.cast %[[S]] {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[R]]

// -----

// What tells close numbers apart reads rounded ones, and what only moves them is left alone.
func.func @exact(%x: tensor<4xf16>, %y: tensor<4xf16>) -> (tensor<4xi1>, tensor<8xf16>) {
  %0 = relay.add %x, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = relay.less %0, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  %2 = relay.concatenate %x, %y {axis = 0} : (tensor<4xf16>, tensor<4xf16>) -> tensor<8xf16>
  func.return %1, %2 : tensor<4xi1>, tensor<8xf16>
}
// CHECK-LABEL: func.func @exact
// CHECK:         %[[S:.*]] = relay.add {{.*}} -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.cast %[[S]] {dtype = f16}
// CHECK-NEXT:    %[[L:.*]] = relay.less %[[R]], %y
// CHECK-NEXT:    %[[C:.*]] = relay.concatenate %x, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<8xf16>
// CHECK-NEXT:    func.return %[[L]], %[[C]]

// -----

// The lowering of an average pool sums in f32; it converts the elements that it reads.
func.func @pool(%x: tensor<1x1x4x4xf16>) -> tensor<1x1x1x1xf16> {
  %0 = relay.nn.avg_pool2d %x {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x4x4xf16>) -> tensor<1x1x2x2xf16>
  %1 = relay.exp %0 : (tensor<1x1x2x2xf16>) -> tensor<1x1x2x2xf16>
  %2 = relay.nn.global_avg_pool2d %1 : (tensor<1x1x2x2xf16>) -> tensor<1x1x1x1xf16>
  func.return %2 : tensor<1x1x1x1xf16>
}
// CHECK-LABEL: func.func @pool
// CHECK-NEXT:    relay.nn.avg_pool2d {{.*}} -> tensor<1x1x2x2xf16>
// CHECK-NEXT:    relay.cast {{.*}} {dtype = f32}
// CHECK-NEXT:    relay.exp {{.*}} -> tensor<1x1x2x2xf32>
// CHECK-NEXT:    relay.nn.global_avg_pool2d {{.*}} -> tensor<1x1x1x1xf32>

// -----

// Inside of an activation nothing is rounded: maximum and minimum read what is f32 already.
func.func @softplus(%x: tensor<4xf16>, %c: tensor<4xi1>) -> (tensor<4xf16>, tensor<4xf16>) {
  %0 = relay.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  %1 = relay.constant dense<11.0> : tensor<f16>
  %2 = relay.maximum %x, %1 : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %3 = relay.minimum %0, %2 : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %4 = relay.where %c, %1, %1 : (tensor<4xi1>, tensor<f16>, tensor<f16>) -> tensor<4xf16>
  func.return %3, %4 : tensor<4xf16>, tensor<4xf16>
}
// CHECK-LABEL: func.func @softplus
// CHECK-NEXT:    relay.cast %x {dtype = f32}
// CHECK-NOT:     relay.cast
// CHECK:         relay.minimum {{.*}} -> tensor<4xf32>
// CHECK-NEXT:    relay.cast {{.*}} {dtype = f16}
// CHECK:         relay.where {{.*}} -> tensor<4xf16>
