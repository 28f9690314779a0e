// RUN: byoc-opt %s -p convert-relay-to-linalg,pad-in-one-kernel | filecheck %s

func.func @main(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = relay.nn.pad %x {pad_width = array<i64: 1, 1, 2, 1>, pad_value = 5.0 : f64, pad_mode = "constant"} : (tensor<2x3xf32>) -> tensor<4x6xf32>
  %1 = relay.concatenate %y, %y {axis = 1} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  func.return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     linalg.generic
// CHECK:         host.kernel "insert_slice" %x
// CHECK:           %[[FIVE:.*]] = arith.constant 5.000000e+00 : f32
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[FIVE]] : f32
// A concatenation fills nothing, and stays as it is.
// CHECK:         tensor.insert_slice
// CHECK:         tensor.insert_slice
