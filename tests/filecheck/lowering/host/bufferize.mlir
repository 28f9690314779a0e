// RUN: byoc-opt %s --split-input-file -p convert-relay-to-linalg,bufferize | filecheck %s

// The first op writes where the result belongs, the second one over it.
// CHECK-LABEL: func.func @main(%{{.*}}: memref<4xf32>, %out: memref<4xf32>)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: memref.alloc
  // CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<4xf32>) outs(%out : memref<4xf32>)
  // CHECK: linalg.generic {{.*}} ins(%out : memref<4xf32>) outs(%out : memref<4xf32>)
  // CHECK: func.return
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// A result that is an argument or a constant is copied.
// CHECK: memref.global
// CHECK-SAME: byoc.weight = #relay.weight
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK: memref.get_global @byoc_weight_
  // CHECK: linalg.generic {{.*}} doc = "copy"
  // CHECK: linalg.generic {{.*}} doc = "copy"
  %c = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %x, %c : tensor<2xf32>, tensor<2xf32>
}

// -----

// The value lives on: the second op may not write over it.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: linalg.generic {{.*}} outs(%[[A:.*]] : memref<4xf32>)
  // CHECK: linalg.generic {{.*}} ins(%[[A]] : memref<4xf32>) outs(%[[B:out_.*]] : memref<4xf32>)
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Reshapes and slices are views of the buffer; a region gets a dense copy of a slice.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x2xf32> {
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [4, 2], strides: [2, 1] : memref<2x4xf32> to memref<4x2xf32>
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [2], sizes: [2, 2], strides: [2, 1]
  // CHECK: doc = "copy"
  // CHECK: func.call @npu_main_0(%{{.*}}, %out) : (memref<2x2xf32>, memref<2x2xf32>) -> ()
  %0 = relay.reshape %x {newshape = [4, 2]} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %1 = relay.nn.relu %0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = relay.strided_slice %1 {begin = [1, 0], end = [3, 2], strides = [1, 1]} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %3 = func.call @npu_main_0(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %3 : tensor<2x2xf32>
}
// CHECK: func.func private @npu_main_0(memref<2x2xf32>, memref<2x2xf32>) -> ()
func.func private @npu_main_0(tensor<2x2xf32>) -> tensor<2x2xf32> attributes {byoc.compiler = "npu"}

// -----

// A kernel that changes a value begins with a copy of it, where it may not change that itself. An output
// may be the memory of an argument that nothing reads any more.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  attributes {byoc.aliases = [array<i64: 0, 0>]}
func.func @main(%x: tensor<1x5x4xf32>, %y: tensor<1x5x4xf32>, %u: tensor<1x2x4xf32>, %s: tensor<1xi64>) -> (tensor<1x5x4xf32>, tensor<1x5x4xf32>) {
  // CHECK: host.copy_apart %x, %[[A:out.*]] : memref<1x5x4xf32>, memref<1x5x4xf32>
  // CHECK: host.kernel "update_slice" %u, %s, %[[A]] :
  // CHECK: linalg.generic {{.*}} doc = "copy"} ins(%y
  // CHECK: host.kernel "update_slice"
  // CHECK: doc = "add"} ins(%{{.*}}, %y
  %0 = relay.update_slice %x, %u, %s : (tensor<1x5x4xf32>, tensor<1x2x4xf32>, tensor<1xi64>) -> tensor<1x5x4xf32>
  %1 = relay.update_slice %y, %u, %s : (tensor<1x5x4xf32>, tensor<1x2x4xf32>, tensor<1xi64>) -> tensor<1x5x4xf32>
  %2 = relay.add %1, %y : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  func.return %0, %2 : tensor<1x5x4xf32>, tensor<1x5x4xf32>
}

// -----

// Of a large tensor that something is put into, the border alone is filled: rows above and below, and
// what is left of the rows between.
// CHECK-LABEL: func.func @main
// CHECK: %[[OUT:.*]] = memref.alloc() {{.*}} : memref<1x64x66x66xf32>
// CHECK: memref.reinterpret_cast %[[OUT]] to offset: [0], sizes: [1, 64, 1, 66]
// CHECK: doc = "fill"
// CHECK: memref.reinterpret_cast %[[OUT]] to offset: [4290], sizes: [1, 64, 1, 66]
// CHECK: doc = "fill"
// CHECK: memref.reinterpret_cast %[[OUT]] to offset: [66], sizes: [1, 64, 64, 1]
// CHECK: doc = "fill"
// CHECK: memref.reinterpret_cast %[[OUT]] to offset: [131], sizes: [1, 64, 64, 1]
// CHECK: doc = "fill"
// CHECK: memref.reinterpret_cast %[[OUT]] to offset: [67], sizes: [1, 64, 64, 64]
// CHECK: doc = "copy"
func.func @main(%x: tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32> {
  %0 = relay.nn.max_pool2d %x {pool_size = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  func.return %0 : tensor<1x64x64x64xf32>
}

// -----

// A small one is filled as a whole.
// CHECK-LABEL: func.func @main
// CHECK: %[[OUT:.*]] = memref.alloc() {{.*}} : memref<1x2x6x6xf32>
// CHECK-NEXT: linalg.generic {{.*}} doc = "fill"} outs(%[[OUT]] : memref<1x2x6x6xf32>)
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.max_pool2d %x {pool_size = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %0 : tensor<1x2x4x4xf32>
}
