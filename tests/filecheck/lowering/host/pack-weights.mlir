// RUN: byoc-opt %s --split-input-file -p 'convert-relay-to-linalg,pack-weights{vector-bits=256}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'convert-relay-to-linalg,pack-weights{vector-bits=256},bufferize,outline-kernels,plan-buffers,convert-linalg-to-loops{threads=false vector-bits=256}' | filecheck %s --check-prefix LOOPS

// [units, steps] becomes panels of 16 units; 24 units are two panels, the second one half empty.
// The loops read the panels where they are.
// CHECK-LABEL: func.func @main
// LOOPS-LABEL: func.func @main
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x24xf32> {
  // CHECK: %[[W:.*]] = relay.constant {{.*}} : tensor<2x4x16xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: affine_map<(d0, d1, d2) -> ((d1 floordiv 16), d2, (d1 mod 16))>
  // CHECK-SAME: ins(%x, %[[W]]
  // LOOPS: func.func private @dense_0
  // LOOPS-NOT: memref.alloca
  // LOOPS: func.call @tile_6x16_f32_panel
  // LOOPS: func.call @tile_6x16_f32_panel_masked
  %w = relay.constant dense<2.0> : tensor<24x4xf32>
  %0 = relay.nn.dense %x, %w {units = 24 : i64} : (tensor<6x4xf32>, tensor<24x4xf32>) -> tensor<6x24xf32>
  func.return %0 : tensor<6x24xf32>
}

// -----

// Narrower than a tile: only turned.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x10xf32> {
  // CHECK: %[[W:.*]] = relay.constant {{.*}} : tensor<4x10xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: affine_map<(d0, d1, d2) -> (d2, d1)>
  // CHECK-SAME: ins(%x, %[[W]]
  %w = relay.constant dense<2.0> : tensor<10x4xf32>
  %0 = relay.nn.dense %x, %w {units = 10 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  func.return %0 : tensor<6x10xf32>
}

// -----

// One row reads panels, too.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x4xf32>) -> tensor<1x24xf32> {
  // CHECK: relay.constant {{.*}} : tensor<2x4x16xf32>
  // CHECK: floordiv
  %w = relay.constant dense<2.0> : tensor<24x4xf32>
  %0 = relay.nn.dense %x, %w {units = 24 : i64} : (tensor<1x4xf32>, tensor<24x4xf32>) -> tensor<1x24xf32>
  func.return %0 : tensor<1x24xf32>
}

// -----

// One row and a narrow matrix: it stays.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x4xf32>) -> tensor<1x10xf32> {
  // CHECK: relay.constant {{.*}} : tensor<10x4xf32>
  // CHECK-NOT: floordiv
  %w = relay.constant dense<2.0> : tensor<10x4xf32>
  %0 = relay.nn.dense %x, %w {units = 10 : i64} : (tensor<1x4xf32>, tensor<10x4xf32>) -> tensor<1x10xf32>
  func.return %0 : tensor<1x10xf32>
}
