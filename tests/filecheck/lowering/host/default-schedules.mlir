// RUN: byoc-opt %s -p 'choose-schedules' | filecheck %s

// A line of %x is used again after 64 others, whose distance of 16 KB puts all into one set.
// CHECK-LABEL: @far_apart
// CHECK: schedule = "blocked"
func.func private @far_apart(%x: memref<64x4096xf32>, %y: memref<4096x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x4096xf32>) outs(%y : memref<4096x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// After 1024 others, of which the cache holds 256.
// CHECK-LABEL: @many
// CHECK: schedule = "blocked"
func.func private @many(%x: memref<1024x32xf32>, %y: memref<32x1024xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<1024x32xf32>) outs(%y : memref<32x1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// 64 lines at a distance of 12.25 KB: the cache holds them.
// CHECK-LABEL: @few
// CHECK-NOT: schedule
func.func private @few(%x: memref<64x3136xf32>, %y: memref<3136x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x3136xf32>) outs(%y : memref<3136x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// Lines that lie next to each other are read ahead.
// CHECK-LABEL: @next_to_each_other
// CHECK-NOT: schedule
func.func private @next_to_each_other(%x: memref<4096x8xf32>, %y: memref<8x4096xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4096x8xf32>) outs(%y : memref<8x4096xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// All of it fits.
// CHECK-LABEL: @small
// CHECK-NOT: schedule
func.func private @small(%x: memref<32x128xf32>, %y: memref<128x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x128xf32>) outs(%y : memref<128x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
