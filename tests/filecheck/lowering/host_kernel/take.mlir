// RUN: byoc-opt %s -p 'convert-relay-to-linalg' | filecheck %s
// RUN: byoc-opt %s -p 'convert-relay-to-linalg,bufferize,outline-kernels' | filecheck %s --check-prefix=KERNEL

// An op that reads at computed places becomes a kernel: an index counts from the end when it is
// negative, and is clamped.

func.func @main(%x: tensor<5x3xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
  %r = relay.take %x, %i {axis = 0} : (tensor<5x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return %r : tensor<2x3xf32>
}

// CHECK: %r = host.kernel "take" %x, %i : (tensor<5x3xf32>, tensor<2xi32>) -> tensor<2x3xf32> {
// CHECK-NEXT: ^bb0(%{{.*}}: memref<5x3xf32>, %{{.*}}: memref<2xi32>, %{{.*}}: memref<2x3xf32>):
// CHECK: scf.for
// CHECK: arith.cmpi slt
// CHECK: arith.select
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: scf.for
// CHECK: memref.load
// CHECK: memref.store
// CHECK: host.yield
// CHECK: func.return %r : tensor<2x3xf32>

// KERNEL: func.call @take_0(%x, %i, %out) : (memref<5x3xf32>, memref<2xi32>, memref<2x3xf32>) -> ()
// KERNEL: func.func private @take_0
