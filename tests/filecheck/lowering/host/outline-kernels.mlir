// RUN: byoc-opt %s --split-input-file -p convert-relay-to-linalg,bufferize,outline-kernels | filecheck %s

// Equal ops share a kernel.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: func.call @exp_0(%{{.*}}, %{{.*}}) : (memref<4xf32>, memref<4xf32>) -> ()
  // CHECK: func.call @exp_0(%{{.*}}, %{{.*}}) : (memref<4xf32>, memref<4xf32>) -> ()
  // CHECK: func.func private @exp_0
  // CHECK-SAME: byoc.kernel
  // CHECK-NOT: func.func
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A matrix product makes a kernel with what follows it in place; a buffer is one argument.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>) -> tensor<8x32xf32> {
  // CHECK: func.call @dense_add_relu_0(%out, %{{.*}}, %{{.*}}, %{{.*}})
  // CHECK-NEXT: func.return
  // CHECK: func.func private @dense_add_relu_0
  // CHECK-COUNT-4: linalg.generic
  // CHECK-NOT: linalg.generic
  %0 = relay.nn.dense %x, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %1 = relay.add %0, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = relay.nn.relu %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  func.return %2 : tensor<8x32xf32>
}

// -----

// What walks through the same rows makes a kernel.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<32x24xf32>) -> tensor<32x24xf32> {
  // CHECK: func.call @softmax_0(%{{.*}}, %x, %out, %{{.*}})
  // CHECK-NEXT: func.return
  // CHECK: func.func private @softmax_0
  // CHECK-COUNT-6: linalg.generic
  // CHECK-NOT: func.func
  %0 = relay.nn.softmax %x {axis = -1 : i64} : (tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %0 : tensor<32x24xf32>
}

// -----

// Sums of columns read all rows: they wait for what fills them.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<32x24xf32>) -> tensor<32x24xf32> {
  // CHECK-COUNT-6: func.call
  // CHECK-NOT: func.call
  // CHECK: func.return
  %0 = relay.nn.softmax %x {axis = 0 : i64} : (tensor<32x24xf32>) -> tensor<32x24xf32>
  func.return %0 : tensor<32x24xf32>
}
