// RUN: byoc-opt %s -p merge-idempotent-ops | filecheck %s

// The third op has the result of the first.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.abs %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %0 = relay.abs %x
// CHECK-NEXT:    %1 = relay.exp %0
// CHECK-NEXT:    func.return %1

// Other ops on the result stay, and ops of which two differ from one.
func.func @others(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.floor %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @others(
// CHECK-NEXT:    %0 = relay.abs %x
// CHECK-NEXT:    %1 = relay.floor %0
// CHECK-NEXT:    %2 = relay.exp %1
// CHECK-NEXT:    %3 = relay.exp %2
