// RUN: byoc-opt %s --split-input-file -p simplify | filecheck %s

func.func @reshapes(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2x3xf32>) {
  %0 = relay.expand_dims %x {axis = [0]} : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
  %1 = relay.reshape %0 {newshape = [6]} : (tensor<1x2x3xf32>) -> tensor<6xf32>
  %2 = relay.reshape %1 {newshape = [3, 2]} : (tensor<6xf32>) -> tensor<3x2xf32>
  %3 = relay.squeeze %0 {axis = [0]} : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  func.return %2, %3 : tensor<3x2xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT:    %[[R:.*]] = relay.reshape %x {newshape = [3, 2]}
// CHECK-NEXT:    func.return %[[R]], %x

// -----

func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<3x4x2xf32>) {
  %0 = relay.transpose %x {axes = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = relay.transpose %0 {axes = [1, 2, 0]} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %2 = relay.transpose %0 {axes = [2, 0, 1]} : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  func.return %1, %2 : tensor<2x3x4xf32>, tensor<3x4x2xf32>
}
// CHECK-LABEL: func.func @transposes
// CHECK-NEXT:    %[[T:.*]] = relay.transpose %x {axes = [1, 2, 0]}
// CHECK-NEXT:    func.return %x, %[[T]]

// -----

func.func @transpose_of_ones(%x: tensor<1x3x4xf32>) -> tensor<3x1x4xf32> {
  %0 = relay.transpose %x {axes = [1, 0, 2]} : (tensor<1x3x4xf32>) -> tensor<3x1x4xf32>
  func.return %0 : tensor<3x1x4xf32>
}
// CHECK-LABEL: func.func @transpose_of_ones
// CHECK-NEXT:    relay.reshape %x {newshape = [3, 1, 4]}

// -----

func.func @neutral(%x: tensor<2xf32>, %n: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %one = relay.constant dense<1.0> : tensor<f32>
  %minus_zero = relay.constant dense<-0.0> : tensor<f32>
  %zero = relay.constant dense<0.0> : tensor<f32>
  %none = relay.constant dense<0> : tensor<i32>
  %0 = relay.multiply %one, %x : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = relay.divide %0, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = relay.add %1, %minus_zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = relay.subtract %2, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = relay.add %n, %none : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  func.return %3, %4 : tensor<2xf32>, tensor<2xi32>
}
// CHECK-LABEL: func.func @neutral
// CHECK-NEXT:    func.return %x, %n

// -----

// -0.0 + 0.0 is 0.0; a constant of a larger shape broadcasts
func.func @not_neutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2x2xf32>) {
  %zero = relay.constant dense<0.0> : tensor<f32>
  %ones = relay.constant dense<1.0> : tensor<2x2xf32>
  %0 = relay.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = relay.multiply %x, %ones : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0, %1 : tensor<2xf32>, tensor<2x2xf32>
}
// CHECK-LABEL: func.func @not_neutral
// CHECK:         relay.add
// CHECK:         relay.multiply

// -----

func.func @nothing_moves(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = relay.concatenate %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = relay.split %0 {sections = [2]} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = relay.broadcast_to %1 {shape = [2]} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = relay.cast %2 {dtype = f32} : (tensor<2xf32>) -> tensor<2xf32>
  %4 = relay.nn.pad %3 {pad_width = [0, 0]} : (tensor<2xf32>) -> tensor<2xf32>
  %5 = relay.strided_slice %4 {begin = [0], end = [2], strides = [1]} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %5 : tensor<2xf32>
}
// CHECK-LABEL: func.func @nothing_moves
// CHECK-NEXT:    func.return %x

// -----

// same type, other elements
func.func @moves(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = relay.nn.pad %x {pad_width = [1, -1]} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = relay.strided_slice %x {begin = [1], end = [-1], strides = [-1]} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @moves
// CHECK:         relay.nn.pad
// CHECK:         relay.strided_slice

// -----

func.func @clips(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = relay.constant dense<0.0> : tensor<f32>
  %0 = relay.maximum %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = relay.nn.relu %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = relay.clip %1 {a_min = -1.0, a_max = 6.0} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = relay.clip %2 {a_min = 7.0, a_max = 9.0} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @clips
// CHECK-DAG:     relay.nn.relu %x
// CHECK-DAG:     relay.clip %x {a_min = 0.0, a_max = 6.0}
// CHECK-DAG:     relay.clip %x {a_min = 7.0, a_max = 7.0}
// CHECK-NOT:     relay.maximum

// -----

func.func @pads(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32>) -> (tensor<1x1x4x5xf32>, tensor<1x1x4x5xf32>) {
  %0 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 2, 1]} : (tensor<1x1x4x4xf32>) -> tensor<1x1x6x7xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x6x7xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x5xf32>
  %2 = relay.nn.avg_pool2d %0 {pool_size = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x6x7xf32>) -> tensor<1x1x4x5xf32>
  func.return %1, %2 : tensor<1x1x4x5xf32>, tensor<1x1x4x5xf32>
}
// CHECK-LABEL: func.func @pads
// CHECK-NEXT:    relay.nn.conv2d %x, %w {{.*}}padding = [1, 2, 1, 1]
// CHECK-NEXT:    relay.nn.avg_pool2d %x {{.*}}padding = [1, 2, 1, 1]{{.*}}count_include_pad = true

// -----

// not zeros, and a pool whose own padding does not count
func.func @pads_stay(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x6x6xf32>) {
  %0 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 1, 1], pad_value = 1.0} : (tensor<1x1x4x4xf32>) -> tensor<1x1x6x6xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x6x6xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32>
  %2 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 1, 1]} : (tensor<1x1x4x4xf32>) -> tensor<1x1x6x6xf32>
  %3 = relay.nn.avg_pool2d %2 {pool_size = [3, 3], strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x6x6xf32>) -> tensor<1x1x6x6xf32>
  func.return %1, %3 : tensor<1x1x4x4xf32>, tensor<1x1x6x6xf32>
}
// CHECK-LABEL: func.func @pads_stay
// CHECK-COUNT-2: relay.nn.pad

// -----

func.func @dead(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = relay.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = relay.negative %0 : (tensor<2xf32>) -> tensor<2xf32>
  func.return %x : tensor<2xf32>
}
// CHECK-LABEL: func.func @dead
// CHECK-NEXT:    func.return

// -----

// a constant matrix makes a dense layer, turned or as it is
func.func @product_with_a_weight(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x1xf32>) {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %v = relay.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %0 = relay.nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = relay.nn.matmul %x, %v {transpose_b = true} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x1xf32>
  func.return %0, %1 : tensor<2x2xf32>, tensor<2x1xf32>
}
// CHECK-LABEL: func.func @product_with_a_weight
// CHECK:         %[[W:.*]] = relay.constant dense<[[1.000000e+00, 3.000000e+00, 5.000000e+00], [2.000000e+00, 4.000000e+00, 6.000000e+00]]>
// CHECK-NEXT:    relay.nn.dense %x, %[[W]]
// CHECK-NEXT:    relay.nn.dense %x, %v

// -----

// taps that no window lays on the image: of one line, of one pixel, and at one end
func.func @taps_on_padding(%line: tensor<1x1x1x8xf32>, %pixel: tensor<1x1x1x1xf32>) -> (tensor<1x1x1x8xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) {
  %w = relay.constant dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]]> : tensor<1x1x3x3xf32>
  %0 = relay.nn.conv2d %line, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x1x8xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x1x8xf32>
  %1 = relay.nn.conv2d %pixel, %w {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x1x1x1xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x1x1xf32>
  %2 = relay.nn.conv2d %pixel, %w {strides = [1, 1], padding = [4, 0, 0, 2], dilation = [2, 1]} : (tensor<1x1x1x1xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x1x1xf32>
  func.return %0, %1, %2 : tensor<1x1x1x8xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>
}
// CHECK-LABEL: func.func @taps_on_padding
// CHECK:         %[[LINE:.*]] = relay.constant dense<[[[[4.000000e+00, 5.000000e+00, 6.000000e+00]]]]>
// CHECK-NEXT:    relay.nn.conv2d %line, %[[LINE]] {strides = [1, 1], padding = [0, 1, 0, 1]
// CHECK-NEXT:    %[[PIXEL:.*]] = relay.constant dense<5.000000e+00> : tensor<1x1x1x1xf32>
// CHECK-NEXT:    relay.nn.conv2d %pixel, %[[PIXEL]] {strides = [2, 2], padding = [0, 0, 0, 0]
// CHECK-NEXT:    %[[CORNER:.*]] = relay.constant dense<7.000000e+00> : tensor<1x1x1x1xf32>
// CHECK-NEXT:    relay.nn.conv2d %pixel, %[[CORNER]] {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [2, 1]

// -----

// pools: what the window reads beyond the image does not count, at its end neither
func.func @pools_beyond_the_image(%x: tensor<1x1x7x9xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x2x3xf32>, tensor<1x1x1x1xf32>) {
  %0 = relay.nn.avg_pool2d %x {pool_size = [2560, 2560], strides = [2560, 2560], padding = [0, 0, 0, 0], dilation = [1, 1], ceil_mode = true} : (tensor<1x1x7x9xf32>) -> tensor<1x1x1x1xf32>
  %1 = relay.nn.max_pool2d %x {pool_size = [12, 3], strides = [4, 4], padding = [6, 1, 3, 1], dilation = [1, 1]} : (tensor<1x1x7x9xf32>) -> tensor<1x1x2x3xf32>
  %2 = relay.nn.avg_pool2d %x {pool_size = [9, 11], strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], count_include_pad = true} : (tensor<1x1x7x9xf32>) -> tensor<1x1x1x1xf32>
  func.return %0, %1, %2 : tensor<1x1x1x1xf32>, tensor<1x1x2x3xf32>, tensor<1x1x1x1xf32>
}
// CHECK-LABEL: func.func @pools_beyond_the_image
// CHECK:         relay.nn.avg_pool2d %x {pool_size = [7, 9], strides = [2560, 2560], padding = [0, 0, 0, 0]
// CHECK-NEXT:    relay.nn.max_pool2d %x {pool_size = [10, 3], strides = [4, 4], padding = [4, 1, 3, 1]
// CHECK-NEXT:    relay.nn.avg_pool2d %x {pool_size = [9, 11]

// -----

// bytes: padding is the zero point
func.func @quantised_taps_on_padding(%x: tensor<1x1x1xui8>, %z: tensor<ui8>, %v: tensor<i8>) -> tensor<1x1x1xi32> {
  %w = relay.constant dense<[[[1, 2, 3]]]> : tensor<1x1x3xi8>
  %0 = relay.qnn.conv1d %x, %w, %z, %v {strides = [1], padding = [1, 1], dilation = [1]} : (tensor<1x1x1xui8>, tensor<1x1x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x1xi32>
  func.return %0 : tensor<1x1x1xi32>
}
// CHECK-LABEL: func.func @quantised_taps_on_padding
// CHECK:         %[[W:.*]] = relay.constant dense<2> : tensor<1x1x1xi8>
// CHECK-NEXT:    relay.qnn.conv1d %x, %[[W]], %z, %v {strides = [1], padding = [0, 0]

// -----

// all taps of two pixels are read; a weight that is infinite makes NaN of padding; a window that is cut would need the image cut
func.func @taps_stay(%x: tensor<1x1x2xf32>, %pixel: tensor<1x1x1xf32>, %three: tensor<1x1x3xf32>) -> (tensor<1x1x2xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>) {
  %w = relay.constant dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>
  %v = relay.constant dense<[[[1.0, 2.0, 0x7F800000]]]> : tensor<1x1x3xf32>
  %0 = relay.nn.conv1d %x, %w {strides = [1], padding = [1, 1], dilation = [1]} : (tensor<1x1x2xf32>, tensor<1x1x3xf32>) -> tensor<1x1x2xf32>
  %1 = relay.nn.conv1d %pixel, %v {strides = [1], padding = [1, 1], dilation = [1]} : (tensor<1x1x1xf32>, tensor<1x1x3xf32>) -> tensor<1x1x1xf32>
  %2 = relay.nn.conv1d %three, %w {strides = [1], padding = [1, 1], dilation = [2]} : (tensor<1x1x3xf32>, tensor<1x1x3xf32>) -> tensor<1x1x1xf32>
  func.return %0, %1, %2 : tensor<1x1x2xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>
}
// CHECK-LABEL: func.func @taps_stay
// CHECK-COUNT-3: tensor<1x1x3xf32>) ->
