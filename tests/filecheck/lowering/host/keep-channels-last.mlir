// RUN: byoc-opt %s --split-input-file -p keep-channels-last | filecheck %s

// An element-wise op goes on with the channels last; the transposition meets the opposite one.
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @between(%x: tensor<1x8x9x16xf32>) -> tensor<1x8x9x16xf32> {
  %e = tensor.empty() : tensor<1x16x8x9xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"], doc = "channels_first"} ins(%x : tensor<1x8x9x16xf32>) outs(%e : tensor<1x16x8x9xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<1x16x8x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"], doc = "tanh"} ins(%0 : tensor<1x16x8x9xf32>) outs(%e : tensor<1x16x8x9xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<1x16x8x9xf32>
  %f = tensor.empty() : tensor<1x8x9x16xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"], doc = "channels_last"} ins(%1 : tensor<1x16x8x9xf32>) outs(%f : tensor<1x8x9x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<1x8x9x16xf32>
  func.return %2 : tensor<1x8x9x16xf32>
}
// CHECK-LABEL: func.func @between(%x: tensor<1x8x9x16xf32>)
// CHECK-NEXT:  %[[EMPTY:.*]] = tensor.empty() : tensor<1x8x9x16xf32>
// CHECK-NEXT:  %[[RESULT:.*]] = linalg.generic {{.*}} doc = "tanh"} ins(%x : tensor<1x8x9x16xf32>) outs(%[[EMPTY]] : tensor<1x8x9x16xf32>)
// CHECK-NOT:   channels_
// CHECK:       func.return %[[RESULT]] : tensor<1x8x9x16xf32>

// -----

// The mean of all pixels reads a tensor once, as it is; its result is another.
func.func @mean(%x: tensor<1x8x9x16xf32>, %zero: tensor<1x16xf32>) -> tensor<1x16xf32> {
  %e = tensor.empty() : tensor<1x16x8x9xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"], doc = "channels_first"} ins(%x : tensor<1x8x9x16xf32>) outs(%e : tensor<1x16x8x9xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<1x16x8x9xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"], doc = "mean"} ins(%0 : tensor<1x16x8x9xf32>) outs(%zero : tensor<1x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<1x16xf32>
  func.return %1 : tensor<1x16xf32>
}
// CHECK-LABEL: func.func @mean
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>], {{.*}} doc = "mean"} ins(%x : tensor<1x8x9x16xf32>)
// CHECK-NOT:   channels_first
// CHECK:       func.return
