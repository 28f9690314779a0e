// RUN: byoc-opt %s -p convert-tensors-to-relay --split-input-file --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @elementwise(
// CHECK-NEXT:    [[C:%.*]] = relay.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    [[S:%.*]] = relay.add %x, [[C]] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    [[R:%.*]] = relay.tanh [[S]] : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    func.return [[R]]
func.func @elementwise(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = arith.addf %x, %c : tensor<2xf32>
  %1 = math.tanh %0 : tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @product(
// CHECK:         [[Z:%.*]] = relay.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    [[F:%.*]] = relay.broadcast_to [[Z]] {shape = [4, 4]}
// CHECK-NEXT:    [[P:%.*]] = relay.nn.matmul %x, %y
// CHECK-NEXT:    [[R:%.*]] = relay.add [[P]], [[F]]
// CHECK-NEXT:    func.return [[R]]
func.func @product(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%x, %y : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %r : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @loop(
// CHECK-NEXT:    [[R:%.*]] = relay.for %x, %y {body = @loop_for, count = 3, carried = 1}
// CHECK-NEXT:    func.return [[R]]
// CHECK:       func.func private @loop_for(%{{.*}}: tensor<i64>, [[S:%.*]]: tensor<4xf32>, [[Y:%.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[T:%.*]] = relay.add [[S]], [[Y]]
// CHECK-NEXT:    func.return [[T]]
func.func @loop(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.constant 0 : index
  %b = arith.constant 3 : index
  %c = arith.constant 1 : index
  %r = scf.for %i = %a to %b step %c iter_args(%s = %x) -> (tensor<4xf32>) {
    %t = arith.addf %s, %y : tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

func.func @unknown_count(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @below {{scf.for at loc(unknown): accepted are constant bounds, ops on tensors in the body, and no use of the induction variable}}
  %r = scf.for %i = %n to %n step %n iter_args(%s = %x) -> (tensor<4xf32>) {
    scf.yield %s : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @others_stay(
// CHECK:         arith.divsi
// CHECK-NEXT:    tensor.insert_slice
func.func @others_stay(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = arith.divsi %x, %x : tensor<4xi32>
  %1 = tensor.insert_slice %0 into %x[0][4][1] : tensor<4xi32> into tensor<4xi32>
  func.return %1 : tensor<4xi32>
}
