// RUN: byoc-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

relay.symbol @n
func.func @f(%x: tensor<?x2xf32, #relay.shape<[n]>>) {
  func.return
}
// CHECK: tensor<?x2xf32, #relay.shape<[n]>> names 1 sizes, its rank is 2

// -----

relay.symbol @n
func.func @f(%x: tensor<?x3xf32, #relay.shape<[n, 2]>>) {
  func.return
}
// CHECK: dimension 1 is 3 in the shape and 2 in its encoding

// -----

relay.symbol @n
func.func @f(%x: tensor<?x2xf32, #relay.shape<[4, n]>>) {
  func.return
}
// CHECK: dimension 0 is ? in the shape and 4 in its encoding

// -----

relay.symbol @n
func.func @f(%x: tensor<2xf32, #relay.shape<[2]>>) {
  func.return
}
// CHECK: tensor<2xf32, #relay.shape<[2]>> names sizes that are all numbers; leave the encoding out

// -----

relay.symbol @n
func.func @f(%x: tensor<?xf32, #relay.shape<[m]>>) {
  func.return
}
// CHECK: tensor<?xf32, #relay.shape<[m]>> names m; the module has no relay.symbol of that name

// -----

func.func @f(%x: tensor<?xf32, #relay.shape<[m]>>) {
  %0 = relay.exp %x : (tensor<?xf32, #relay.shape<[m]>>) -> tensor<?xf32, #relay.shape<[m]>>
  func.return
}
// CHECK: names m; the module has no relay.symbol of that name

// -----

relay.symbol @n
relay.symbol @n {hint = 3}
// CHECK: relay.symbol @n is declared 2 times

// -----

relay.symbol @n {hint = 1}
// CHECK: relay.symbol @n: the hint is 1; accepted is a size in [0, inf], not less than 2

// -----

relay.symbol @n {most = 1}
// CHECK: relay.symbol has no most; it has min, max, hint and expected

// -----

relay.guard "==" <[n, 2]>
// CHECK: relay.guard: n: the module has no relay.symbol of that name

// -----

relay.symbol @n
relay.guard "<" <[n, 2]>
// CHECK: relay.guard has one of ==, !=, <=, > between two sizes, found '<' between 2

// -----

relay.symbol @n
relay.symbol @m
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>, %y: tensor<?xf32, #relay.shape<[m]>>) {
  %0 = relay.add %x, %y : (tensor<?xf32, #relay.shape<[n]>>, tensor<?xf32, #relay.shape<[m]>>) -> tensor<?xf32, #relay.shape<[n]>>
  func.return
}
// CHECK: relay.add: whether n == m is not known

// -----

relay.symbol @n
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>) {
  %0 = relay.exp %x : (tensor<?xf32, #relay.shape<[n]>>) -> tensor<?xf32, #relay.shape<[n + 1]>>
  func.return
}
// CHECK: relay.exp: result #0 has type tensor<?xf32, #relay.shape<[n + 1]>>, inferred tensor<?xf32, #relay.shape<[n]>>

// -----

func.func @f(%x: tensor<?xf32, #relay.shape<[power(n, 2)]>>) {
  func.return
}
// CHECK: 'power' of 2 sizes is no size

// -----

relay.symbol @n
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>) {
  %0, %1 = relay.topk %x {k = #relay.size<5>} : (tensor<?xf32, #relay.shape<[n]>>) -> (tensor<5xf32>, tensor<5xi64>)
  func.return
}
// CHECK: 5 is a number; write it as such
