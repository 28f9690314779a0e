// RUN: byoc-opt %s --print-debuginfo -p 'fake-quantization-to-integer{products="relay.qnn.conv2d"}' | filecheck %s

// a product that is not asked for stays in floats, whatever is around it
func.func @dense(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x4xi8> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x3xi8>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %z : (tensor<4x3xi8>, tensor<f32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("dense")
  %3 = relay.qnn.quantize %2, %s, %z : (tensor<2x4xf32>, tensor<f32>, tensor<i8>) -> tensor<2x4xi8>
  func.return %3 : tensor<2x4xi8>
}
// CHECK:       byoc.kept_float = {dense = "relay.qnn.dense is not among the enabled products"
// CHECK:       %[[X:.*]] = relay.qnn.dequantize %x
// CHECK:       %[[W:.*]] = relay.qnn.dequantize %w
// CHECK:       %[[D:.*]] = relay.nn.dense %[[X]], %[[W]]
// CHECK:       relay.qnn.quantize %[[D]]
