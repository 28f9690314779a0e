// RUN: byoc-opt %s -p convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers | filecheck %s --check-prefix BUFFERS
// RUN: byoc-opt %s -p "convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers,convert-linalg-to-loops{threads=false},bind-sizes" | filecheck %s
// RUN: byoc-opt %s -p "specialise-dims{batch=3 keys=100}" | filecheck %s --check-prefix NUMBERS

// A function that binds a symbol takes those of the inputs as arguments. Its memory is as large as they say.

// BUFFERS:       func.func @main(%arena: memref<?xi8>
// BUFFERS-SAME:  byoc.arena_size = #relay.shape<[64*floordiv(batch*keys + 15, 16)]>
// BUFFERS:       func.func private @part(%arena: memref<?xi8>

// CHECK-NOT:     relay.symbol
// CHECK:         func.func @main(%arena: memref<?xi8>, %sizes: memref<2xi64>
// CHECK:           func.call @part(%{{.*}}, %count, %x, %out, %{{.*}}, %{{.*}}) : ({{.*}}, index, index) -> ()
// CHECK:         func.func private @part(%arena: memref<?xi8>, %count: memref<i64>, {{.*}}, %{{.*}}: index, %{{.*}}: index)
// CHECK:           memref.load %count[] : memref<i64>
// CHECK-NOT:       host.size

// NUMBERS:       relay.symbol @n {min = 1, hint = 4}
// NUMBERS-NOT:   relay.symbol
// NUMBERS:       func.func private @part(%count: tensor<i64>, %x: tensor<3x100xf32>)
// NUMBERS:         end = #relay.shape<[3, 4*min(n, 25)]>

relay.symbol @n {min = 1, hint = 4}
relay.symbol @batch {min = 1, hint = 4}
relay.symbol @keys {min = 8, hint = 64}
func.func @main(%count: tensor<i64>, %x: tensor<?x?xf32, #relay.shape<[batch, keys]>>) -> tensor<?x1xf32, #relay.shape<[batch, 1]>> {
  %0 = relay.bind %count, %x {body = @part} : (tensor<i64>, tensor<?x?xf32, #relay.shape<[batch, keys]>>) -> tensor<?x1xf32, #relay.shape<[batch, 1]>>
  func.return %0 : tensor<?x1xf32, #relay.shape<[batch, 1]>>
}
func.func private @part(%count: tensor<i64>, %x: tensor<?x?xf32, #relay.shape<[batch, keys]>>) -> tensor<?x1xf32, #relay.shape<[batch, 1]>> attributes {byoc.binds = "n"} {
  %0 = relay.strided_slice %x {begin = [0, 0], end = #relay.shape<[batch, min(4*n, keys)]>, strides = [1, 1]} : (tensor<?x?xf32, #relay.shape<[batch, keys]>>) -> tensor<?x?xf32, #relay.shape<[batch, min(4*n, keys)]>>
  %1 = relay.exp %0 : (tensor<?x?xf32, #relay.shape<[batch, min(4*n, keys)]>>) -> tensor<?x?xf32, #relay.shape<[batch, min(4*n, keys)]>>
  %2 = relay.sum %1 {axis = [1], keepdims = true} : (tensor<?x?xf32, #relay.shape<[batch, min(4*n, keys)]>>) -> tensor<?x1xf32, #relay.shape<[batch, 1]>>
  func.return %2 : tensor<?x1xf32, #relay.shape<[batch, 1]>>
}
