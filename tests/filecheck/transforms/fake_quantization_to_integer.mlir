// RUN: byoc-opt %s --split-input-file -p fake-quantization-to-integer | filecheck %s

// per channel, with a bias and a relu; the zero point is not the smallest integer
func.func @convolution(%x: tensor<1x4x5x5xui8>, %w: tensor<6x4x3x3xi8>, %b: tensor<6xi32>) -> tensor<1x6x5x5xui8> {
  %sx = relay.constant dense<0.5> : tensor<f32>
  %zx = relay.constant dense<3> : tensor<ui8>
  %sw = relay.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %zw = relay.constant dense<0> : tensor<i8>
  %sb = relay.constant dense<[0.5, 1.0, 1.5, 2.0, 2.5, 3.0]> : tensor<6xf32>
  %zb = relay.constant dense<0> : tensor<i32>
  %sy = relay.constant dense<0.25> : tensor<f32>
  %zy = relay.constant dense<100> : tensor<ui8>
  %0 = relay.qnn.dequantize %x, %sx, %zx : (tensor<1x4x5x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x5x5xf32>
  %1 = relay.qnn.dequantize %w, %sw, %zw {axis = 0} : (tensor<6x4x3x3xi8>, tensor<6xf32>, tensor<i8>) -> tensor<6x4x3x3xf32>
  %2 = relay.qnn.dequantize %b, %sb, %zb {axis = 0} : (tensor<6xi32>, tensor<6xf32>, tensor<i32>) -> tensor<6xf32>
  %3 = relay.nn.conv2d %0, %1 {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x4x5x5xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x5x5xf32>
  %4 = relay.nn.bias_add %3, %2 : (tensor<1x6x5x5xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32>
  %5 = relay.nn.relu %4 : (tensor<1x6x5x5xf32>) -> tensor<1x6x5x5xf32>
  %6 = relay.qnn.quantize %5, %sy, %zy : (tensor<1x6x5x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x6x5x5xui8>
  func.return %6 : tensor<1x6x5x5xui8>
}
// CHECK-LABEL: func.func @convolution
// CHECK:         %[[T:.*]] = relay.qnn.conv2d %x, %w, %zx, %zw {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]}
// CHECK:         %[[S:.*]] = relay.constant dense<[5.000000e-01, 1.000000e+00, {{.*}}]> : tensor<6xf32>
// CHECK:         %[[B:.*]] = relay.nn.bias_add %[[T]], %b
// CHECK-NEXT:    %[[Q:.*]] = relay.qnn.requantize %[[B]], %[[S]], %{{.*}}, %sy, %zy
// CHECK-NEXT:    %[[C:.*]] = relay.clip %[[Q]] {a_min = 100.0, a_max = 255.0}
// CHECK-NEXT:    func.return %[[C]]

// -----

// the sums of a product that is not quantised are dequantised; a constant matrix makes a dense layer
func.func @product(%x: tensor<2x3xui8>, %sx: tensor<f32>, %zx: tensor<ui8>) -> tensor<2x2xf32> {
  %w = relay.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi8>
  %sw = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %zw = relay.constant dense<[1, 2]> : tensor<2xi8>
  %0 = relay.qnn.dequantize %x, %sx, %zx : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %sw, %zw : (tensor<3x2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<3x2xf32>
  %2 = relay.nn.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  func.return %2 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func @product
// CHECK:         %[[W:.*]] = relay.constant dense<[[1, 3, 5], [2, 4, 6]]> : tensor<2x3xi8>
// CHECK:         %[[T:.*]] = relay.qnn.dense %x, %[[W]], %zx, %zw
// CHECK-NEXT:    %[[S:.*]] = relay.multiply %sx, %sw
// CHECK:         relay.qnn.dequantize %[[T]], %[[S]], %{{.*}} : 

// -----

// scales along an axis go with it: a weight that is turned before it is multiplied
func.func @turned_weight(%x: tensor<2x3xui8>, %w: tensor<4x3xi8>, %s: tensor<f32>, %zx: tensor<ui8>, %sw: tensor<4xf32>, %zw: tensor<i8>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dequantize %x, %s, %zx : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  %1 = relay.qnn.dequantize %w, %sw, %zw {axis = 0} : (tensor<4x3xi8>, tensor<4xf32>, tensor<i8>) -> tensor<4x3xf32>
  %2 = relay.transpose %1 {axes = [1, 0]} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %3 = relay.nn.matmul %0, %2 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @turned_weight
// CHECK-NEXT:    %[[W:.*]] = relay.transpose %w {axes = [1, 0]}
// CHECK-NEXT:    relay.qnn.matmul %x, %[[W]], %zx, %zw

// -----

// weights of 4 bits become bytes
func.func @small_weight(%x: tensor<1x3xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<1x1xf32> {
  %w = relay.constant dense<[[-8, 7, 1]]> : tensor<1x3xi4>
  %zw = relay.constant dense<0> : tensor<i4>
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x3xf32>
  %1 = relay.qnn.dequantize %w, %s, %zw : (tensor<1x3xi4>, tensor<f32>, tensor<i4>) -> tensor<1x3xf32>
  %2 = relay.nn.dense %0, %1 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x1xf32>
  func.return %2 : tensor<1x1xf32>
}
// CHECK-LABEL: func.func @small_weight
// CHECK:         %[[W:.*]] = relay.constant dense<[[-8, 7, 1]]> : tensor<1x3xi8>
// CHECK:         relay.qnn.dense %x, %[[W]]

// -----

// moved integers keep their parameters; equal ones on both sides leave nothing
func.func @moves(%x: tensor<1x2x4x4xi8>, %s: tensor<f32>) -> tensor<1x4x2x2xi8> {
  %z = relay.constant dense<5> : tensor<i8>
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x2x4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.max_pool2d %0 {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %2 = relay.nn.pad %1 {pad_width = [0, 0, 1, 1, 0, 0, 0, 0]} : (tensor<1x2x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = relay.transpose %2 {axes = [0, 1, 3, 2]} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %4 = relay.qnn.quantize %3, %s, %z : (tensor<1x4x2x2xf32>, tensor<f32>, tensor<i8>) -> tensor<1x4x2x2xi8>
  func.return %4 : tensor<1x4x2x2xi8>
}
// CHECK-LABEL: func.func @moves
// CHECK:         %[[P:.*]] = relay.nn.max_pool2d %x
// CHECK-NEXT:    %[[B:.*]] = relay.nn.pad %[[P]] {pad_width = [0, 0, 1, 1, 0, 0, 0, 0], pad_value = 5.0}
// CHECK-NEXT:    %[[T:.*]] = relay.transpose %[[B]]
// CHECK-NEXT:    func.return %[[T]]

// -----

func.func @split(%x: tensor<2x4xi8>, %s: tensor<f32>, %z: tensor<i8>) -> (tensor<2x1xi8>, tensor<2x3xf32>) {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<2x4xi8>, tensor<f32>, tensor<i8>) -> tensor<2x4xf32>
  %1, %2 = relay.split %0 {sections = [1, 3], axis = 1} : (tensor<2x4xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>)
  %3 = relay.qnn.quantize %1, %s, %z : (tensor<2x1xf32>, tensor<f32>, tensor<i8>) -> tensor<2x1xi8>
  func.return %3, %2 : tensor<2x1xi8>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @split
// CHECK:         %[[A:.*]], %[[B:.*]] = relay.split %x
// CHECK:         %[[F:.*]] = relay.qnn.dequantize %[[B]], %s, %z
// CHECK-NEXT:    func.return %[[A]], %[[F]]

// -----

// sums, and parts that are joined in the parameters of the whole
func.func @several(%x: tensor<1x4xi8>, %y: tensor<1x4xui8>, %s: tensor<f32>, %t: tensor<f32>, %zx: tensor<i8>, %zy: tensor<ui8>) -> (tensor<1x4xi8>, tensor<1x8xi8>) {
  %0 = relay.qnn.dequantize %x, %s, %zx : (tensor<1x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x4xf32>
  %1 = relay.qnn.dequantize %y, %t, %zy : (tensor<1x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4xf32>
  %2 = relay.add %0, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = relay.qnn.quantize %2, %t, %zx : (tensor<1x4xf32>, tensor<f32>, tensor<i8>) -> tensor<1x4xi8>
  %4 = relay.concatenate %0, %1 {axis = 1} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
  %5 = relay.qnn.quantize %4, %s, %zx : (tensor<1x8xf32>, tensor<f32>, tensor<i8>) -> tensor<1x8xi8>
  func.return %3, %5 : tensor<1x4xi8>, tensor<1x8xi8>
}
// CHECK-LABEL: func.func @several
// CHECK-NEXT:    %[[A:.*]] = relay.qnn.add %x, %y, %s, %zx, %t, %zy, %t, %zx
// CHECK-NEXT:    %[[R:.*]] = relay.qnn.requantize %y, %t, %zy, %s, %zx
// CHECK-NEXT:    %[[J:.*]] = relay.concatenate %x, %[[R]]
// CHECK-NEXT:    func.return %[[A]], %[[J]]

// -----

// any function of one byte is looked up: here x * sigmoid(x)
func.func @function(%x: tensor<4xui8>) -> tensor<4xi8> {
  %s = relay.constant dense<0.1> : tensor<f32>
  %zx = relay.constant dense<128> : tensor<ui8>
  %zy = relay.constant dense<0> : tensor<i8>
  %0 = relay.qnn.dequantize %x, %s, %zx : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %1 = relay.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.multiply %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.qnn.quantize %2, %s, %zy : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  func.return %3 : tensor<4xi8>
}
// CHECK-LABEL: func.func @function
// CHECK:         %[[T:.*]] = relay.constant {{.*}} : tensor<256xi8>
// CHECK-NEXT:    relay.qnn.lookup %x, %[[T]]

// -----

func.func @pools(%x: tensor<1x2x4x4xui8>, %s: tensor<f32>, %z: tensor<ui8>, %t: tensor<f32>) -> (tensor<1x2x2x2xui8>, tensor<1x2xui8>) {
  %0 = relay.qnn.dequantize %x, %s, %z : (tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.avg_pool2d %0 {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %2 = relay.qnn.quantize %1, %t, %z : (tensor<1x2x2x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x2x2xui8>
  %3 = relay.mean %0 {axis = [2, 3]} : (tensor<1x2x4x4xf32>) -> tensor<1x2xf32>
  %4 = relay.qnn.quantize %3, %t, %z : (tensor<1x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2xui8>
  func.return %2, %4 : tensor<1x2x2x2xui8>, tensor<1x2xui8>
}
// CHECK-LABEL: func.func @pools
// CHECK-NEXT:    relay.qnn.avg_pool2d %x, %s, %z, %t, %z {pool_size = [2, 2]
// CHECK-NEXT:    %[[G:.*]] = relay.qnn.global_avg_pool2d %x, %s, %z, %t, %z
// CHECK-NEXT:    relay.reshape %[[G]] {newshape = [1, 2]}

// -----

// dynamic quantisation: sums that are cast and multiplied
func.func @dynamic(%x: tensor<2x3xui8>, %w: tensor<4x3xi8>, %zx: tensor<ui8>, %zw: tensor<i8>, %s: tensor<1xf32>) -> tensor<2x4xf32> {
  %0 = relay.qnn.dense %x, %w, %zx, %zw : (tensor<2x3xui8>, tensor<4x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<2x4xi32>
  %1 = relay.cast %0 {dtype = f32} : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %2 = relay.multiply %1, %s : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[T:.*]] = relay.qnn.dense %x, %w, %zx, %zw
// CHECK:         %[[S:.*]] = relay.reshape %s {newshape = []}
// CHECK:         relay.qnn.dequantize %[[T]], %[[S]]
