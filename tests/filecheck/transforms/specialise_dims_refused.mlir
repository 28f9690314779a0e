// RUN: byoc-opt %s -p 'specialise-dims{n=6}' --split-input-file --verify-diagnostics | filecheck %s

// expected-error @unknown {{'n' is 6, accepted is a size in [0, 4]}}
relay.symbol @n {max = 4}

// -----

// expected-error @unknown {{sizes are given for n; the module's symbols are m, n}}
relay.symbol @n
relay.symbol @m

// -----

// expected-error @unknown {{specialise-dims: Expand_1 needs n != 6, which does not hold for {'n': 6}}}
relay.symbol @n
relay.guard "!=" <[n, 6]> loc("Expand_1")

// -----

relay.symbol @n
func.func @f(%x: tensor<?x2xf32, #relay.shape<[n, 2]>>) {
  %0 = relay.strided_slice %x {begin = [0, 0], end = #relay.shape<[min(n, 7), 2]>, strides = [1, 1]} : (tensor<?x2xf32, #relay.shape<[n, 2]>>) -> tensor<?x2xf32, #relay.shape<[min(n, 7), 2]>>
  func.return
}
// CHECK: relay.strided_slice %x {begin = [0, 0], end = [6, 2]
