// RUN: byoc-opt %s -p drop-unused-functions | filecheck %s

// What public functions lead to stays, through other functions too.
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.if %c, %x {then_branch = @loop, else_branch = @same} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.for %x {body = @step, count = 3, carried = 1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @step(%i: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.for %x {body = @unused_step, count = 3, carried = 1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @unused_step(%i: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @npu_main_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"}
// CHECK:      func.func @main(
// CHECK:      func.func private @loop(
// CHECK:      func.func private @step(
// CHECK:      func.func private @same(
// CHECK-NOT:  @unused
// CHECK:      func.func private @npu_main_0(

// A symbol goes with the last function that binds it; one of the inputs stays.

// CHECK-NOT:  relay.symbol @gone
// CHECK:      relay.symbol @kept
// CHECK-NOT:  @bound
relay.symbol @gone {min = 1, max = 4, hint = 2}
relay.symbol @kept {min = 1, max = 4, hint = 2}
func.func private @bound(%n: tensor<i64>) -> tensor<i64> attributes {byoc.binds = "gone"} {
  func.return %n : tensor<i64>
}
