// RUN: byoc-opt %s --split-input-file --print-debuginfo -p fake-quantization-to-integer | filecheck %s

func.func @wide_data(%x: tensor<2x3xi16>, %w: tensor<4x3xi8>, %s: tensor<f32>, %z: tensor<i16>, %zw: tensor<i8>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x3xi16>, tensor<f32>, tensor<i16>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %zw : (tensor<4x3xi8>, tensor<f32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("wide")
  func.return %2 : tensor<2x4xf32>
}
// CHECK:       byoc.kept_float = {wide = "its data is of int16, integer units take int8 and uint8"}
// CHECK:       relay.nn.dense

// -----

func.func @data_per_channel(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %sx: tensor<3xf32>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dequantize %x, %sx, %z : (tensor<2x3xi8>, tensor<3xf32>, tensor<i8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %z : (tensor<4x3xi8>, tensor<f32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("channels")
  func.return %2 : tensor<2x4xf32>
}
// CHECK:       byoc.kept_float = {channels = "its data has parameters along an axis, accepted is one for the whole tensor"}

// -----

func.func @weight_along_inner(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %sw: tensor<3xf32>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x3xi8>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %sw, %z : (tensor<4x3xi8>, tensor<3xf32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("inner")
  func.return %2 : tensor<2x4xf32>
}
// CHECK:       byoc.kept_float = {inner = "its weight has parameters along axis 1, accepted is axis 0"}

// -----

func.func @bias_of_another_scale(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %b: tensor<4xi32>, %z: tensor<i8>, %zb: tensor<i32>) -> tensor<2x4xf32> {
  %zero = relay.constant dense<0> : tensor<i32>
  %s = relay.constant dense<0.5> : tensor<f32>
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x3xi8>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %z : (tensor<4x3xi8>, tensor<f32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %3 = relay.qnn.dequantize %b, %s, %zero : (tensor<4xi32>, tensor<f32>, tensor<i32>) -> tensor<4xf32>
  %4 = relay.nn.bias_add %2, %3 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("bias")
  func.return %4 : tensor<2x4xf32>
}
// CHECK:       byoc.kept_float = {bias = "its bias has another scale than the product of its operands"}
// CHECK:       relay.qnn.dense
// CHECK:       relay.qnn.dequantize
// CHECK:       relay.nn.bias_add {{.*}} -> tensor<2x4xf32>

// -----

func.func @interpolation(%x: tensor<1x1x2x2xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<1x1x4x4xi8> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x1x2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x1x2x2xf32>
  %1 = relay.image.resize %0 {size = [1, 1, 4, 4], scales = [1.0, 1.0, 2.0, 2.0]} : (tensor<1x1x2x2xf32>) -> tensor<1x1x4x4xf32> loc("linear")
  %2 = relay.qnn.quantize %1, %s, %z : (tensor<1x1x4x4xf32>, tensor<f32>, tensor<i8>) -> tensor<1x1x4x4xi8>
  func.return %2 : tensor<1x1x4x4xi8>
}
// CHECK:       linear = "it interpolates by method 'linear', which computes values in between"

// -----

func.func @no_integer_form(%x: tensor<2x4xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x4xi8> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x4xi8>, tensor<f32>, tensor<i8>) -> tensor<2x4xf32>
  %1 = relay.nn.softmax %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = relay.qnn.quantize %1, %s, %z : (tensor<2x4xf32>, tensor<f32>, tensor<i8>) -> tensor<2x4xi8> loc("soft")
  func.return %2 : tensor<2x4xi8>
}
// CHECK:       byoc.kept_float = {soft = "nn.softmax of these operands has no integer form"}

// -----

func.func @pad_of_ones(%x: tensor<2xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<3xf32> {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2xi8>, tensor<f32>, tensor<i8>) -> tensor<2xf32>
  %1 = relay.nn.pad %0 {pad_width = [0, 1], pad_value = 1.0} : (tensor<2xf32>) -> tensor<3xf32> loc("ones")
  func.return %1 : tensor<3xf32>
}
// CHECK:       byoc.kept_float = {ones = "it pads with a value that is not known to be the zero point"}

// -----

// a clip without known parameters, blocks, and a result of another rank of parameters
func.func @unknown(%x: tensor<2x4xi8>, %s: tensor<f32>, %z: tensor<i8>, %sb: tensor<2x2xf32>) -> (tensor<2x4xi8>, tensor<2x4xi8>) {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x4xi8>, tensor<f32>, tensor<i8>) -> tensor<2x4xf32>
  %1 = relay.nn.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = relay.qnn.quantize %1, %s, %z : (tensor<2x4xf32>, tensor<f32>, tensor<i8>) -> tensor<2x4xi8> loc("clip")
  %3 = relay.qnn.quantize %0, %sb, %z {block_size = 2} : (tensor<2x4xf32>, tensor<2x2xf32>, tensor<i8>) -> tensor<2x4xi8>
  func.return %2, %3 : tensor<2x4xi8>, tensor<2x4xi8>
}
// CHECK:       byoc.kept_float = {clip = "it is clipped, by bounds that are computed at run time as integers"}
// CHECK:       relay.nn.relu
