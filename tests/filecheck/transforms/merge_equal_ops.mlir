// RUN: byoc-opt %s -p merge-equal-ops | filecheck %s

// Equal ops become one, and then the ops that use them; other properties make another op.
func.func @main(%n: tensor<i32>, %x: tensor<2x2xf32>) -> (tensor<i64>, tensor<2x2xf32>) {
  %0 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
  %1 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
  %2 = relay.add %0, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %3 = relay.add %1, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %4 = relay.multiply %2, %3 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %5 = relay.transpose %x {axes = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %6 = relay.transpose %x {axes = [0, 1]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = relay.add %5, %6 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %4, %7 : tensor<i64>, tensor<2x2xf32>
}
// CHECK:         %0 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
// CHECK-NEXT:    %1 = relay.add %0, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %2 = relay.multiply %1, %1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %3 = relay.transpose %x {axes = [1, 0]}
// CHECK-NEXT:    %4 = relay.transpose %x {axes = [0, 1]}

// Each random key is another one.
func.func @random() -> (tensor<2xui32>, tensor<2xui32>) {
  %0 = relay.random_key : () -> tensor<2xui32>
  %1 = relay.random_key : () -> tensor<2xui32>
  func.return %0, %1 : tensor<2xui32>, tensor<2xui32>
}
// CHECK-LABEL: func.func @random(
// CHECK-NEXT:    %0 = relay.random_key
// CHECK-NEXT:    %1 = relay.random_key
// CHECK-NEXT:    func.return %0, %1
