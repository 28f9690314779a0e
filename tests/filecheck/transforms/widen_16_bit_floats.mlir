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
