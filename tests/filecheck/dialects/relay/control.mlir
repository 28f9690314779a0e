// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.if %c, %x {then_branch = @double, else_branch = @square} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @double(tensor<4xf32>) -> tensor<4xf32>
func.func private @square(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @branches(
// CHECK-NEXT:    %0 = relay.if %c, %x {then_branch = @double, else_branch = @square} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>

func.func @counted(%s: tensor<4xf32>, %x: tensor<2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>) {
  %0, %1 = relay.for %s, %x {body = @step, count = 3, carried = 1} : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<3x2xf32>
}
func.func private @step(tensor<i64>, tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
// CHECK-LABEL: func.func @counted(
// CHECK-NEXT:    %0, %1 = relay.for %s, %x {body = @step, count = 3, carried = 1} : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>)

func.func @until(%limit: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.while %limit, %go, %s {body = @attempt, carried = 1} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @attempt(tensor<i64>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
// CHECK-LABEL: func.func @until(
// CHECK-NEXT:    %0 = relay.while %limit, %go, %s {body = @attempt, carried = 1} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>

func.func @collected(%limit: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>) -> tensor<9x4xf32> {
  %0 = relay.while %limit, %go, %s {body = @attempt, carried = 0} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<9x4xf32>
  func.return %0 : tensor<9x4xf32>
}
// CHECK-LABEL: func.func @collected(
// CHECK-NEXT:    %0 = relay.while %limit, %go, %s {body = @attempt, carried = 0} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<9x4xf32>

relay.symbol @keys {min = 1, max = 64, hint = 32}
func.func @bound(%n: tensor<i64>, %x: tensor<64xf32>) -> tensor<4xf32> {
  %0 = relay.bind %n, %x {body = @first} : (tensor<i64>, tensor<64xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @first(tensor<i64>, tensor<64xf32>) -> tensor<4xf32> attributes {byoc.binds = "keys"}
// CHECK-LABEL: func.func @bound(
// CHECK-NEXT:    %0 = relay.bind %n, %x {body = @first} : (tensor<i64>, tensor<64xf32>) -> tensor<4xf32>

func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.call %x {body = @layer} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.call %0 {body = @layer} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @layer(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @calls(
// CHECK-NEXT:    %0 = relay.call %x {body = @layer} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %1 = relay.call %0 {body = @layer} : (tensor<4xf32>) -> tensor<4xf32>
