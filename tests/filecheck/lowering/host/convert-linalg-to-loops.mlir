// RUN: byoc-opt %s --split-input-file -p 'convert-relay-to-linalg,fuse-elementwise,bufferize,outline-kernels,plan-buffers,convert-linalg-to-loops{threads=true vector-bits=256}' | filecheck %s

// Dimensions that lie in memory as one are one loop.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: func.func private @relu_0
  // CHECK: %[[N:.*]] = arith.constant 24 : index
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
  // CHECK-NOT: scf.for
  %0 = relay.nn.relu %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %0 : tensor<2x3x4xf32>
}

// -----

// Enough work is spread over threads.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  // CHECK: func.func private @exp_0
  // CHECK: "scf.parallel"
  %0 = relay.exp %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
  func.return %0 : tensor<512x512xf32>
}

// -----

// A sum along rows is carried in registers.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x100xf32>) -> tensor<4xf32> {
  // CHECK: func.func private @sum_1
  // CHECK: %[[S:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
  // CHECK: memref.store %[[S]]
  %0 = relay.sum %x {axis = [1]} : (tensor<4x100xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

// So is one that reads a value of each row, too: the values of all rows are no vector to go along.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<40x100xf32>) -> tensor<40xi64> {
  // CHECK: func.func private @argmax_1
  // CHECK: scf.for %[[ROW:[^ ]*]] =
  // CHECK: %[[S:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)
  // CHECK: memref.store %[[S]], %{{.*}}[%[[ROW]]]
  %0 = relay.argmax %x {axis = [1]} : (tensor<40x100xf32>) -> tensor<40xi64>
  func.return %0 : tensor<40xi64>
}

// -----

// Rows of a matrix that meet one vector are summed four at a time, when there are only fours.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x64xf32>, %w: tensor<8x64xf32>, %v: tensor<6x64xf32>) -> (tensor<1x8xf32>, tensor<1x6xf32>) {
  // CHECK: func.func private @dense_0
  // CHECK: scf.for {{.*}} -> (f32, f32, f32, f32) {
  // CHECK: func.func private @dense_1
  // CHECK: scf.for {{.*}} -> (f32) {
  %0 = relay.nn.dense %x, %w : (tensor<1x64xf32>, tensor<8x64xf32>) -> tensor<1x8xf32>
  %1 = relay.nn.dense %x, %v : (tensor<1x64xf32>, tensor<6x64xf32>) -> tensor<1x6xf32>
  func.return %0, %1 : tensor<1x8xf32>, tensor<1x6xf32>
}

// -----

// A matrix product packs, then runs micro-kernels; the rest of 33 columns takes a masked one.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<12x16xf32>, %y: tensor<16x33xf32>) -> tensor<12x33xf32> {
  // CHECK: func.func private @matmul_0
  // CHECK: memref.alloca
  // CHECK: vector.store
  // CHECK: func.call @tile_6x16_f32
  // CHECK: func.call @tile_6x16_f32_masked
  // CHECK: func.func private @tile_6x16_f32
  // CHECK-SAME: no_inline
  // CHECK-SAME: byoc.vectorised
  // CHECK: host.prefetch
  // CHECK: vector.broadcast %{{.*}} : vector<1xf32> to vector<8xf32>
  // CHECK: func.func private @tile_6x16_f32_masked
  // CHECK-NOT: byoc.vectorised
  // CHECK: vector.maskedload
  %0 = relay.nn.matmul %x, %y : (tensor<12x16xf32>, tensor<16x33xf32>) -> tensor<12x33xf32>
  func.return %0 : tensor<12x33xf32>
}

// -----

// A convolution is a matmul: 36 steps, 4 channels times 3 x 3, of 64 pixels are packed.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x4x10x10xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<1x6x8x8xf32> {
  // CHECK: func.func private @conv2d_0
  // CHECK: memref.alloca() {{.*}} : memref<2304xf32>
  // CHECK: func.call @tile_6x16_f32_fresh
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x10x10xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x8x8xf32>
  func.return %0 : tensor<1x6x8x8xf32>
}

// -----

// The window of a depthwise convolution is unrolled. The sums begin with zero in registers.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x8x10x10xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x8x8xf32> {
  // CHECK: func.func private @conv2d_0
  // CHECK-NOT: memref.store
  // CHECK: scf.for
  // CHECK-NOT: memref.store
  // CHECK-COUNT-9: arith.mulf
  // CHECK-NOT: arith.mulf
  // CHECK: memref.store
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = 8} : (tensor<1x8x10x10xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x8x8xf32>
  func.return %0 : tensor<1x8x8x8xf32>
}

// -----

// A matrix that is stored transposed: few rows read it where it is.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<6x160xf32>, %w: tensor<96x160xf32>) -> tensor<6x96xf32> {
  // CHECK: func.func private @dense_0
  // CHECK-NOT: memref.alloca
  // CHECK: func.call @lines_4x3_f32
  // CHECK: func.call @lines_2x3_f32
  // CHECK: func.func private @lines_4x3_f32
  // CHECK: vector.reduction <add>
  %0 = relay.nn.dense %x, %w : (tensor<6x160xf32>, tensor<96x160xf32>) -> tensor<6x96xf32>
  func.return %0 : tensor<6x96xf32>
}

// -----

// With many rows it is turned in squares, into panels on the stack.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<60x160xf32>, %w: tensor<96x160xf32>) -> tensor<60x96xf32> {
  // CHECK: func.func private @dense_0
  // CHECK: memref.alloca
  // CHECK-COUNT-24: vector.shuffle
  // CHECK: func.call @tile_6x16_f32
  %0 = relay.nn.dense %x, %w : (tensor<60x160xf32>, tensor<96x160xf32>) -> tensor<60x96xf32>
  func.return %0 : tensor<60x96xf32>
}

// -----

// Few rows: a matrix of 1.5 MB is read from memory, which several threads do faster.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x512xf32>, %w: tensor<512x768xf32>) -> tensor<4x768xf32> {
  // CHECK: func.func private @matmul_0
  // CHECK: scf.parallel
  %0 = relay.nn.matmul %x, %w : (tensor<4x512xf32>, tensor<512x768xf32>) -> tensor<4x768xf32>
  func.return %0 : tensor<4x768xf32>
}

// -----

// As many multiplications by a small matrix are done before another thread is awake.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x384xf32>) -> tensor<64x384xf32> {
  // CHECK: func.func private @matmul_0
  // CHECK-NOT: scf.parallel
  // CHECK: func.func private @tile
  %0 = relay.nn.matmul %x, %w : (tensor<64x64xf32>, tensor<64x384xf32>) -> tensor<64x384xf32>
  func.return %0 : tensor<64x384xf32>
}
