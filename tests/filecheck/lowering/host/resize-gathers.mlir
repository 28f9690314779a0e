// RUN: byoc-opt %s -p convert-relay-to-linalg | filecheck %s

// Neighbours along the last axis are made of elements anywhere, which no gather is to load. Those along other axes have their neighbours beside them.

// CHECK-LABEL: func.func @main(
// CHECK:         host.kernel "resize" %x
// CHECK:         host.kernel "resize" prefer_no_gather %
// CHECK-NOT:     host.kernel
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x8x8xf32> {
  %0 = relay.image.resize %x {size = [1, 2, 8, 8], method = "linear", coordinate_transformation_mode = "half_pixel"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x8x8xf32>
  func.return %0 : tensor<1x2x8x8xf32>
}
