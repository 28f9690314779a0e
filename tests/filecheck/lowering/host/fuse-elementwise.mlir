// RUN: byoc-opt %s --split-input-file -p convert-relay-to-linalg,fuse-elementwise --print-debuginfo | filecheck %s

// A chain becomes one op that knows all its nodes.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK: linalg.generic {{.*}}affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, {{.*}} doc = "add_relu_exp"
  // CHECK: arith.addf
  // CHECK: arith.maximumf
  // CHECK: math.exp
  // CHECK: loc(fused["a", "b", "c"])
  // CHECK-NOT: linalg.generic
  %0 = relay.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32> loc("a")
  %1 = relay.nn.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("b")
  %2 = relay.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("c")
  func.return %2 : tensor<2x3xf32>
}

// -----

// What two ops read is computed once.
// CHECK-LABEL: func.func @two_readers
func.func @two_readers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: doc = "exp"
  // CHECK: doc = "relu"
  // CHECK: doc = "negative"
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.negative %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A reduction reads each element once, a matrix product many times.
// CHECK-LABEL: func.func @readers
func.func @readers(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>) {
  // CHECK: doc = "exp_sum"
  // CHECK: doc = "tanh"
  // CHECK: doc = "matmul"
  %0 = relay.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = relay.sum %0 {axis = [1]} : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = relay.tanh %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = relay.nn.matmul %2, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4x4xf32>
}

// -----

// A broadcast producer would be computed again for every reader.
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: doc = "exp"
  // CHECK: doc = "add"
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.add %0, %y : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}

// -----

// A search for positions reads its data twice, so what it reads is computed before.
// CHECK-LABEL: func.func @positions
func.func @positions(%x: tensor<4x3xf32>) -> tensor<4xi64> {
  // CHECK: doc = "exp"
  // CHECK: doc = "argmax"
  %0 = relay.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = relay.argmax %0 {axis = [1]} : (tensor<4x3xf32>) -> tensor<4xi64>
  func.return %1 : tensor<4xi64>
}

// -----

// Several readers of a value that become one loop read it once, and take its producer in.
// CHECK-LABEL: func.func @several_readers
func.func @several_readers(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: doc = "exp_tanh_multiply"} ins(%x : tensor<4x3xf32>) outs(%{{[^,]+}} : tensor<4x3xf32>)
  // CHECK: math.exp
  // CHECK-NEXT: math.tanh
  // CHECK-NEXT: arith.mulf
  %0 = relay.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = relay.tanh %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = relay.multiply %1, %0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %2 : tensor<4x3xf32>
}

// -----

// Each reader widens what it reads; another op would be computed again.
// CHECK-LABEL: func.func @widened
func.func @widened(%x: tensor<4x3xf16>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  // CHECK-NOT: doc = "cast"
  // CHECK: doc = "cast_sum"} ins(%x : tensor<4x3xf16>)
  // CHECK: doc = "cast_exp"} ins(%x : tensor<4x3xf16>)
  // CHECK: arith.extf
  %0 = relay.cast %x {dtype = f32} : (tensor<4x3xf16>) -> tensor<4x3xf32>
  %1 = relay.sum %0 {axis = [1]} : (tensor<4x3xf32>) -> tensor<4xf32>
  %2 = relay.exp %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4x3xf32>
}
