// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{shapes [2], [3] do not broadcast}}
  %0 = relay.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error @below {{relay.multiply: expected operands of one element type, found f32 and i32}}
  %0 = relay.multiply %x, %y : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{relay.exp: result #0 has type tensor<3xf32>, inferred tensor<2xf32>}}
  %0 = relay.exp %x : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%c: tensor<2xf32>, %x: tensor<2xf32>) {
  // expected-error @below {{relay.where: the condition must be of i1, found tensor<2xf32>}}
  %0 = relay.where %c, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x2xf32>) {
  // expected-error @below {{relay.nn.dense: expected data [..., in] and weight [units, in]}}
  %0 = relay.nn.dense %x, %w : (tensor<2x3xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) {
  // expected-error @below {{relay.nn.matmul: inner dimensions 3 and 2}}
  %0 = relay.nn.matmul %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{relay.nn.bias_add: bias must be tensor<3xf32>, found tensor<2xf32>}}
  %0 = relay.nn.bias_add %x, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{relay.nn.bias_add: axis is 2, accepted range is [-2, 1]}}
  %0 = relay.nn.bias_add %x, %b {axis = 2} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  // expected-error @below {{relay.nn.conv2d: 4 channels in 1 groups do not fit weight}}
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{relay.nn.conv2d: strides must be 2 integers of at least 1, found [0, 1]}}
  %0 = relay.nn.conv2d %x, %w {strides = [0, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x2x2xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{relay.nn.conv2d: a window of 3 (dilation 1) does not fit the 2 elements}}
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x2x2xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x8xf32>) {
  // expected-error @below {{relay.nn.max_pool2d: data must have rank 4, found tensor<1x4x8xf32>}}
  %0 = relay.nn.max_pool2d %x {pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x8xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{relay.sum: axis [0, -2] repeats a dimension}}
  %0 = relay.sum %x {axis = [0, -2]} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{relay.reshape: newshape [4, -1] does not hold the 6 elements}}
  %0 = relay.reshape %x {newshape = [4, -1]} : (tensor<2x3xf32>) -> tensor<4x1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{relay.transpose: axes [0, 0] is not a permutation of 0..1}}
  %0 = relay.transpose %x {axes = [0, 0]} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{relay.squeeze: dimension 0 of tensor<2x3xf32> is not 1}}
  %0 = relay.squeeze %x {axis = [0]} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error @below {{relay.concatenate: tensor<2x3xf32> and tensor<3x3xf32> differ outside of axis 1}}
  %0 = relay.concatenate %x, %y {axis = 1} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @below {{relay.split: sections [2, 2] do not add up to dimension 0}}
  %0, %1 = relay.split %x {sections = [2, 2]} : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @below {{relay.strided_slice: slice 0:6:1 leaves dimension 0}}
  %0 = relay.strided_slice %x {begin = [0], end = [6], strides = [1]} : (tensor<5xf32>) -> tensor<6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{relay.nn.pad: pad_width must have 2 entries, found 1}}
  %0 = relay.nn.pad %x {pad_width = [1]} : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{relay.nn.pad: pad_mode is 'mirror', accepted is constant, edge, reflect, wrap}}
  %0 = relay.nn.pad %x {pad_width = [1, 1], pad_mode = "mirror"} : (tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error @below {{relay.constant: a constant has a static shape}}
  %0 = relay.constant #relay.weight<"w", "00"> : tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %i: tensor<2xi8>) {
  // expected-error @below {{relay.take: indices must be of i32 or i64, found tensor<2xi8>}}
  %0 = relay.take %x, %i : (tensor<5x4xf32>, tensor<2xi8>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %i: tensor<2x5xi64>) {
  // expected-error @below {{relay.gather: indices tensor<2x5xi64> must have the rank of tensor<5x4xf32>, and be no larger}}
  %0 = relay.gather %x, %i : (tensor<5x4xf32>, tensor<2x5xi64>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{relay.gather_nd: indices tensor<2x3xi64> do not address tensor<5x4xf32>}}
  %0 = relay.gather_nd %x, %i : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %i: tensor<2x4xi64>, %u: tensor<2x4xf32>) {
  // expected-error @below {{relay.scatter_elements: reduction is 'sum', accepted is update, add, mul, max, min}}
  %0 = relay.scatter_elements %x, %i, %u {reduction = "sum"} : (tensor<5x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<5x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %i: tensor<3x1xi64>, %u: tensor<2x4xf32>) {
  // expected-error @below {{relay.scatter_nd: updates tensor<2x4xf32> do not fit indices tensor<3x1xi64>}}
  %0 = relay.scatter_nd %x, %i, %u : (tensor<5x4xf32>, tensor<3x1xi64>, tensor<2x4xf32>) -> tensor<5x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x4xf32>) {
  // expected-error @below {{relay.topk: k is 6, accepted range is [0, 5] along axis 0}}
  %0, %1 = relay.topk %x {k = 6, axis = 0} : (tensor<5x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xi64>)
  func.return
}

// -----

func.func @f(%x: tensor<5x1x2x16xf32>, %w: tensor<1x4x16xf32>, %h: tensor<1x2x4xf32>, %c: tensor<2x4xf32>) {
  // expected-error @below {{relay.nn.lstm: a state must be tensor<1x2x4xf32>, found tensor<2x4xf32>}}
  %0, %1, %2 = relay.nn.lstm %x, %w, %h, %c : (tensor<5x1x2x16xf32>, tensor<1x4x16xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>)
  func.return
}

// -----

func.func @f(%x: tensor<5x1x2x12xf32>, %w: tensor<1x4x12xf32>, %b: tensor<1x12xf32>, %h: tensor<1x2x4xf32>) {
  // expected-error @below {{relay.nn.gru: 1 directions do not fit 'bidirectional'}}
  %0, %1 = relay.nn.gru %x, %w, %b, %h {direction = "bidirectional"} : (tensor<5x1x2x12xf32>, tensor<1x4x12xf32>, tensor<1x12xf32>, tensor<1x2x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<1x2x4xf32>)
  func.return
}

// -----

func.func @f(%x: tensor<3x0xf32>) {
  // expected-error @below {{relay.argmax: axis 1 has no elements to choose from}}
  %0 = relay.argmax %x {axis = [1]} : (tensor<3x0xf32>) -> tensor<3xi64>
  func.return
}

// -----

func.func @out_dtype(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf64> {
  // expected-error @below {{relay.nn.dense: out_dtype is f64 for operands of f32; accepted is f32 for f16 and bf16}}
  %0 = relay.nn.dense %x, %w {out_dtype = f64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf64>
  func.return %0 : tensor<2x4xf64>
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %u: tensor<2x6x4xf32>, %s: tensor<2xi64>) {
  // expected-error @below {{update tensor<2x6x4xf32> does not fit into tensor<2x5x4xf32> along axis 1}}
  %0 = relay.update_slice %x, %u, %s : (tensor<2x5x4xf32>, tensor<2x6x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %u: tensor<1x3x4xf32>, %s: tensor<2xi64>) {
  // expected-error @below {{must have the entries of tensor<2x5x4xf32>}}
  %0 = relay.update_slice %x, %u, %s : (tensor<2x5x4xf32>, tensor<1x3x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>
  func.return
}

// -----

func.func @f(%boxes: tensor<1x4x4xf32>, %scores: tensor<2x1x4xf32>, %overlap: tensor<f32>) {
  // expected-error @below {{relay.vision.non_max_suppression: scores tensor<2x1x4xf32> do not fit boxes tensor<1x4x4xf32>}}
  %0, %1 = relay.vision.non_max_suppression %boxes, %scores, %overlap {max_output_size = 2} : (tensor<1x4x4xf32>, tensor<2x1x4xf32>, tensor<f32>) -> (tensor<4x3xi64>, tensor<i64>)
  func.return
}

// -----

func.func @f(%boxes: tensor<1x4x4xi32>, %scores: tensor<1x1x4xf32>, %overlap: tensor<f32>) {
  // expected-error @below {{relay.vision.non_max_suppression: boxes and scores must be floats, found tensor<1x4x4xi32>}}
  %0, %1 = relay.vision.non_max_suppression %boxes, %scores, %overlap {max_output_size = 2} : (tensor<1x4x4xi32>, tensor<1x1x4xf32>, tensor<f32>) -> (tensor<2x3xi64>, tensor<i64>)
  func.return
}

// -----

func.func @main(%boxes: tensor<1x4x4xf32>, %scores: tensor<1x1x4xf32>, %overlap: tensor<i8>) -> tensor<2x3xi64> {
  // expected-error @below {{relay.vision.non_max_suppression: a threshold is tensor<i8>, accepted is one f32}}
  %0, %1 = relay.vision.non_max_suppression %boxes, %scores, %overlap {max_output_size = 2} : (tensor<1x4x4xf32>, tensor<1x1x4xf32>, tensor<i8>) -> (tensor<2x3xi64>, tensor<i64>)
  func.return %0 : tensor<2x3xi64>
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>) {
  // expected-error @below {{relay.nn.lrn: size is -128, accepted are 1 to 2147483647}}
  %0 = relay.nn.lrn %x {size = -128} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x5x8xf32>, %rois: tensor<1x4xf32>, %batch: tensor<1xi64>) {
  // expected-error @below {{relay.vision.roi_align: sample_ratio is 1025, accepted are 0 to 1024}}
  %0 = relay.vision.roi_align %x, %rois, %batch {pooled_size = [2, 2], sample_ratio = 1025} : (tensor<1x2x5x8xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<1x2x2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x2x2xf32>, %w: tensor<2x2x1x1xf32>) {
  // expected-error @below {{relay.nn.conv2d: data_layout is 'NHWC', accepted is NCHW}}
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], data_layout = "NHWC"} : (tensor<1x2x2x2xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x4x4xf32>, %r: tensor<1x4xf32>, %b: tensor<1xi64>) {
  // expected-error @below {{relay.vision.roi_align: mode is 'mean', accepted is avg, max}}
  %0 = relay.vision.roi_align %x, %r, %b {pooled_size = [1, 1], mode = "mean"} : (tensor<1x2x4x4xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<1x2x1x1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x4x4xf32>, %o: tensor<1x2x4x4xf32>, %w: tensor<4x1x1x1xf32>) {
  // expected-error @below {{relay.nn.deformable_conv2d: weight tensor<4x1x1x1xf32> does not fit data tensor<1x3x4x4xf32> in 3 groups and 1 of offsets}}
  %0 = relay.nn.deformable_conv2d %x, %o, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = 3} : (tensor<1x3x4x4xf32>, tensor<1x2x4x4xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x4x4xf32>
  func.return
}
