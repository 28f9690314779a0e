// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @unknown(%c: tensor<i1>) {
  // expected-error @below {{relay.if: there is no function @nothing}}
  relay.if %c {then_branch = @nothing, else_branch = @nothing} : (tensor<i1>) -> ()
  func.return
}

// -----

func.func @vector(%c: tensor<2xi1>) {
  // expected-error @below {{relay.if: the condition must be tensor<i1>, found tensor<2xi1>}}
  relay.if %c {then_branch = @f, else_branch = @f} : (tensor<2xi1>) -> ()
  func.return
}
func.func private @f()

// -----

func.func @signature(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{relay.if: @g has type (tensor<4xf32>) -> tensor<2xf32>, expected (tensor<4xf32>) -> tensor<4xf32>}}
  %0 = relay.if %c, %x {then_branch = @f, else_branch = @g} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @g(tensor<4xf32>) -> tensor<2xf32>

// -----

func.func @rows(%s: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  // expected-error @below {{relay.for: a stacked result has type tensor<2x4xf32>, its first dimension must be the count, 3}}
  %0, %1 = relay.for %s {body = @f, count = 3, carried = 1} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<2x4xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)

// -----

func.func @carried(%s: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @below {{relay.for: result #0 has type tensor<2xf32>, the carried value has tensor<4xf32>}}
  %0 = relay.for %s {body = @f, count = 3, carried = 1} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> tensor<2xf32>

// -----

func.func @too_many(%s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{relay.for: carried is 2, accepted are 0 to 1, as there are 1 values and 1 results}}
  %0 = relay.for %s {body = @f, count = 3, carried = 2} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> tensor<4xf32>

// -----

func.func @negative(%s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{relay.for: count is -1, accepted is 0 and more}}
  %0 = relay.for %s {body = @f, count = -1, carried = 1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> tensor<4xf32>

// -----

func.func @limit(%limit: tensor<i32>, %go: tensor<i1>, %s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{relay.while: the limit must be tensor<i64>, found tensor<i32>}}
  %0 = relay.while %limit, %go, %s {body = @f, carried = 1} : (tensor<i32>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)

// -----

func.func @collects(%limit: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<2x4xf32>) {
  // expected-error @below {{relay.while: a stacked result has type tensor<2x4xf32>, its first dimension must be the same for all of them, 3}}
  %0, %1 = relay.while %limit, %go, %s {body = @f, carried = 0} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<2x4xf32>)
  func.return %0, %1 : tensor<3x4xf32>, tensor<2x4xf32>
}
func.func private @f(tensor<i64>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>, tensor<4xf32>)

// -----

func.func @unbound(%n: tensor<i64>) -> tensor<4xf32> {
  // expected-error @below {{relay.bind: @f binds no symbol; expected byoc.binds}}
  %0 = relay.bind %n {body = @f} : (tensor<i64>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<i64>) -> tensor<4xf32>

// -----

func.func @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{relay.call: @f has type (tensor<2xf32>) -> tensor<4xf32>, expected (tensor<4xf32>) -> tensor<4xf32>}}
  %0 = relay.call %x {body = @f} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(tensor<2xf32>) -> tensor<4xf32>
