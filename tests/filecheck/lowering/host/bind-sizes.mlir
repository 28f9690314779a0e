// RUN: byoc-opt %s -p convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers | filecheck %s --check-prefix BUFFERS
// RUN: byoc-opt %s -p "convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers,convert-linalg-to-loops{threads=false},bind-sizes" | filecheck %s

// Buffers name their sizes; what shares a place in the arena is as large as the largest.

// BUFFERS:       relay.symbol @n
// BUFFERS:       func.func @main(%arena: memref<?xi8>, %x: memref<?x4xf32, #host.layout<#relay.shape<[n, 4]>, #relay.shape<[4, 1]>, #relay.shape<[0]>>>
// BUFFERS-SAME:    byoc.arena_size = #relay.shape<[64*floordiv(n + 3, 4)]>
// BUFFERS:         host.place %arena[%{{.*}}] : memref<?xi8> to memref<4x?xf32
// BUFFERS:         func.call @transpose_0

// Sizes are arguments of kernels, and computed where @main begins.

// CHECK-NOT:     relay.symbol
// CHECK:         func.func @main(%arena: memref<?xi8>, %sizes: memref<1xi64>, %x
// CHECK-SAME:    attributes {{{.*}}passthrough = ["noimplicitfloat"]{{.*}}}
// CHECK:           %[[LOADED:.*]] = memref.load %sizes[%{{.*}}] : memref<1xi64>
// CHECK:           %[[N:.*]] = arith.index_cast %[[LOADED]] : i64 to index
// CHECK:           func.call @transpose_0(%x, %{{.*}}, %[[N]]) : ({{.*}}, index) -> ()
// CHECK:         func.func private @transpose_0({{.*}}, %{{.*}}: index)
// CHECK-NOT:       host.size

relay.symbol @n {min = 0, hint = 8}
func.func @main(%x: tensor<?x4xf32, #relay.shape<[n, 4]>>) -> tensor<?xf32, #relay.shape<[n]>> {
  %0 = relay.transpose %x {axes = [1, 0]} : (tensor<?x4xf32, #relay.shape<[n, 4]>>) -> tensor<4x?xf32, #relay.shape<[4, n]>>
  %1 = relay.sum %0 {axis = [0]} : (tensor<4x?xf32, #relay.shape<[4, n]>>) -> tensor<?xf32, #relay.shape<[n]>>
  func.return %1 : tensor<?xf32, #relay.shape<[n]>>
}
