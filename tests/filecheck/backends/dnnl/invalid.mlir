// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @layout(%x: tensor<1x8x4xf32, #dnnl.layout<"abc8b">>) {
  // expected-error @below {{'abc8b' is no layout of a tensor of rank 3}}
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x8x4xf32, #dnnl.layout<"abc8b">>) -> tensor<1x8x4xf32, #dnnl.layout<"abc8b">>
  func.return
}

// -----

// expected-error @unknown {{eltwise algorithm is 'relu7', accepted are relu, tanh}}
func.func @algorithm(%x: tensor<1x8x4xf32>) {
  %0 = dnnl.eltwise %x {algorithm = "relu", post_ops = [#dnnl.eltwise<relu7>]} : (tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  func.return
}

// -----

func.func @sum(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>, %y: tensor<1x8x4x4xf32>) {
  // expected-error @below {{a sum takes over tensor<1x8x4x4xf32>, which is not tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>}}
  %0 = dnnl.convolution %x, %w, %y {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.sum]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>
  func.return
}

// -----

func.func @binary(%x: tensor<1x8x4x4xf32>, %y: tensor<1x3x1x1xf32>) {
  // expected-error @below {{shapes [1, 3, 1, 1], [1, 8, 4, 4] do not broadcast}}
  %0 = dnnl.eltwise %x, %y {algorithm = "relu", post_ops = [#dnnl.binary<add>]} : (tensor<1x8x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @weights(%x: tensor<1x8x4x4xf32>, %w: tensor<8x4x1x1xf32>) {
  // expected-error @below {{weights tensor<8x4x1x1xf32> do not fit source tensor<1x8x4x4xf32>}}
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x8x4x4xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @bias(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{bias must have the shape [8], found tensor<4xf32>}}
  %0 = dnnl.convolution %x, %w, %b {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<4xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @view(%x: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) {
  // expected-error @below {{tensor<1x8x4x4xf32, #dnnl.layout<"acdb">> lies otherwise than tensor<1x128xf32>}}
  %0 = dnnl.view %x : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x128xf32>
  func.return
}

// -----

func.func @activation(%x: tensor<1x8x4x4xf32>) {
  // expected-error @below {{dnnl.activation: algorithm is 'blink', accepted are swish, gelu_erf, gelu_tanh}}
  %0 = dnnl.activation %x {algorithm = "blink"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @threads(%x: tensor<4xf32>) {
  // expected-error @below {{dnnl.eltwise: threads is 0, accepted are 1 and more; by default, it is all}}
  %0 = dnnl.eltwise %x {threads = 0, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @milliseconds(%x: tensor<4xf32>) {
  // expected-error @below {{dnnl.eltwise: milliseconds is -0.5, accepted are numbers from 0 on}}
  %0 = dnnl.eltwise %x {milliseconds = -0.5, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @first(%x: tensor<4xf32>) {
  // expected-error @below {{dnnl.eltwise: it is concurrent, so it and the op before it must have threads = 1}}
  %0 = dnnl.eltwise %x {threads = 1, concurrent = true, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @all_threads(%x: tensor<4xf32>) {
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{dnnl.eltwise: it is concurrent, so it and the op before it must have threads = 1}}
  %1 = dnnl.eltwise %x {threads = 1, concurrent = true, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @reads(%x: tensor<4xf32>) {
  %0 = dnnl.eltwise %x {threads = 1, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dnnl.eltwise %x {threads = 1, concurrent = true, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{dnnl.eltwise: it is concurrent with an op whose result it reads; only independent ops run at the same time}}
  %2 = dnnl.eltwise %0 {threads = 1, concurrent = true, algorithm = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @weights(%x: tensor<1x8x4x4xui8>, %w: tensor<8x8x1x1xui8>, %c: tensor<8xf32>, %z: tensor<1xi32>) {
  // expected-error @below {{weights must be of i8, found tensor<8x8x1x1xui8>}}
  %0 = dnnl.quantized_convolution %x, %w, %c, %c, %z, %z {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], element = i8} : (tensor<1x8x4x4xui8>, tensor<8x8x1x1xui8>, tensor<8xf32>, tensor<8xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x8x4x4xi8>
  func.return
}

// -----

func.func @scales(%x: tensor<1x8x4x4xui8>, %w: tensor<8x8x1x1xi8>, %c: tensor<8xf32>, %s: tensor<1xf32>, %z: tensor<1xi32>) {
  // expected-error @below {{scales must be tensor<8xf32>, found tensor<1xf32>}}
  %0 = dnnl.quantized_convolution %x, %w, %c, %s, %z, %z {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], element = i8} : (tensor<1x8x4x4xui8>, tensor<8x8x1x1xi8>, tensor<8xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x8x4x4xi8>
  func.return
}

// -----

func.func @element(%x: tensor<1x8x4x4xui8>, %s: tensor<1xf32>) {
  // expected-error @below {{accepted are i8 and ui8, found f32}}
  %0 = dnnl.quantized_add %x, %x, %s, %s {element = f32} : (tensor<1x8x4x4xui8>, tensor<1x8x4x4xui8>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @table(%x: tensor<4xui8>, %t: tensor<16xui8>) {
  // expected-error @below {{table must be tensor<256xui8>, found tensor<16xui8>}}
  %0 = dnnl.lookup %x, %t : (tensor<4xui8>, tensor<16xui8>) -> tensor<4xui8>
  func.return
}

// -----

func.func @offsets(%x: tensor<4xf32>) {
  // expected-error @below {{dnnl.eltwise: 2 offsets, expected one for each of 1 results}}
  %0 = dnnl.eltwise %x {algorithm = "relu", offsets = [0, 64]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @alignment(%x: tensor<4xf32>) {
  // expected-error @below {{dnnl.eltwise: offsets are [4] and 0, accepted are multiples of 64, and -1 for results that lie elsewhere}}
  %0 = dnnl.eltwise %x {algorithm = "relu", offsets = [4]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @convolution(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) {
  // expected-error @below {{dnnl.convolution: algorithm is 'f9x3', accepted are direct, winograd, f2x3}}
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], algorithm = "f9x3"} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return
}

// -----

func.func @packing(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) {
  // expected-error @below {{dnnl.matmul: packing is 'abc', accepted are any, ba}}
  %0 = dnnl.matmul %x, %w {packing = "abc"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

func.func @product(%x: tensor<3x8xui8>, %w: tensor<5x8xi8>, %b: tensor<5xf32>, %s: tensor<1xf32>, %z: tensor<1xi32>) {
  // expected-error @below {{bias must be tensor<1x5xf32>, found tensor<5xf32>}}
  %0 = dnnl.quantized_matmul %x, %w, %b, %s, %z {element = f32} : (tensor<3x8xui8>, tensor<5x8xi8>, tensor<5xf32>, tensor<1xf32>, tensor<1xi32>) -> tensor<3x5xf32>
  func.return
}

// -----

func.func @pixels(%x: tensor<1x6x4x4xui8>) {
  // expected-error @below {{dnnl.pixel_shuffle: 6 channels of 2 spatial dimensions are no blocks of [2, 2]}}
  %0 = dnnl.pixel_shuffle %x {block = [2, 2]} : (tensor<1x6x4x4xui8>) -> tensor<1x1x8x8xui8>
  func.return
}

// -----

func.func @factors(%x: tensor<1x8x4x4xf32>, %f: tensor<2x8xf32>) {
  // expected-error @below {{dnnl.normalized_concat: factors must be tensor<2x16xf32>, found tensor<2x8xf32>}}
  %0 = dnnl.normalized_concat %x, %x, %f : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<2x8xf32>) -> tensor<1x16x4x4xf32>
  func.return
}
