// RUN: byoc-opt %s --split-input-file --verify-diagnostics

relay.symbol @n
// expected-error @below {{tensor<?x2xf32, #relay.shape<[n]>> names 1 sizes, its rank is 2}}
func.func @f(%x: tensor<?x2xf32, #relay.shape<[n]>>) {
  func.return
}

// -----

relay.symbol @n
// expected-error @below {{dimension 1 is 3 in the shape and 2 in its encoding}}
func.func @f(%x: tensor<?x3xf32, #relay.shape<[n, 2]>>) {
  func.return
}

// -----

relay.symbol @n
// expected-error @below {{dimension 0 is ? in the shape and 4 in its encoding}}
func.func @f(%x: tensor<?x2xf32, #relay.shape<[4, n]>>) {
  func.return
}

// -----

relay.symbol @n
// expected-error @below {{tensor<2xf32, #relay.shape<[2]>> names sizes that are all numbers; leave the encoding out}}
func.func @f(%x: tensor<2xf32, #relay.shape<[2]>>) {
  func.return
}

// -----

relay.symbol @n
// expected-error @below {{tensor<?xf32, #relay.shape<[m]>> names m; the module has no relay.symbol of that name}}
func.func @f(%x: tensor<?xf32, #relay.shape<[m]>>) {
  func.return
}

// -----

func.func @f(%x: tensor<?xf32, #relay.shape<[m]>>) {
  // expected-error @below {{names m; the module has no relay.symbol of that name}}
  %0 = relay.exp %x : (tensor<?xf32, #relay.shape<[m]>>) -> tensor<?xf32, #relay.shape<[m]>>
  func.return
}

// -----

// expected-error @below {{relay.symbol @n is declared 2 times}}
relay.symbol @n
relay.symbol @n {hint = 3}

// -----

// expected-error @below {{relay.symbol @n: the hint is 1; accepted is a size in [0, inf], not less than 2}}
relay.symbol @n {hint = 1}

// -----

// expected-error @unknown {{relay.symbol has no most; it has min, max, hint and expected}}
relay.symbol @n {most = 1}

// -----

// expected-error @below {{relay.guard: n: the module has no relay.symbol of that name}}
relay.guard "==" <[n, 2]>

// -----

relay.symbol @n
// expected-error @below {{relay.guard has one of ==, !=, <=, > between two sizes, found '<' between 2}}
relay.guard "<" <[n, 2]>

// -----

relay.symbol @n
relay.symbol @m
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>, %y: tensor<?xf32, #relay.shape<[m]>>) {
  // expected-error @below {{relay.add: whether n == m is not known}}
  %0 = relay.add %x, %y : (tensor<?xf32, #relay.shape<[n]>>, tensor<?xf32, #relay.shape<[m]>>) -> tensor<?xf32, #relay.shape<[n]>>
  func.return
}

// -----

relay.symbol @n
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>) {
  // expected-error @below {{relay.exp: result #0 has type tensor<?xf32, #relay.shape<[n + 1]>>, inferred tensor<?xf32, #relay.shape<[n]>>}}
  %0 = relay.exp %x : (tensor<?xf32, #relay.shape<[n]>>) -> tensor<?xf32, #relay.shape<[n + 1]>>
  func.return
}

// -----

// expected-error @below {{'power' of 2 sizes is no size}}
func.func @f(%x: tensor<?xf32, #relay.shape<[power(n, 2)]>>) {
  func.return
}

// -----

relay.symbol @n
func.func @f(%x: tensor<?xf32, #relay.shape<[n]>>) {
  // expected-error @below {{5 is a number; write it as such}}
  %0, %1 = relay.topk %x {k = #relay.size<5>} : (tensor<?xf32, #relay.shape<[n]>>) -> (tensor<5xf32>, tensor<5xi64>)
  func.return
}
