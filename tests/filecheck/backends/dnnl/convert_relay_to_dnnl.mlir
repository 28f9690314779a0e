// RUN: byoc-opt %s --split-input-file -p convert-relay-to-dnnl | filecheck %s

// A composite becomes one primitive: the first addition per channel is the bias, the rest post-ops.
func.func private @r(%x: tensor<1x3x8x8xf32>, %w: tensor<16x3x3x3xf32>, %b: tensor<16xf32>, %y: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.conv2d_bias_sum_relu" from "nn.conv2d_nn.bias_add_add_nn.relu_" (%p = %x : tensor<1x3x8x8xf32>, %q = %w : tensor<16x3x3x3xf32>, %r = %b : tensor<16xf32>, %s = %y : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
    %1 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x8x8xf32>
    %2 = relay.nn.bias_add %1, %r : (tensor<1x16x8x8xf32>, tensor<16xf32>) -> tensor<1x16x8x8xf32>
    %3 = relay.add %s, %2 : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %4 = relay.nn.relu %3 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    byoc.yield %4 : tensor<1x16x8x8xf32>
  }
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func private @r
// CHECK-NEXT:    %[[R:.*]] = dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.binary<add>, #dnnl.eltwise<relu>]}
// CHECK-NEXT:    func.return %[[R]]

// -----

// The constants decide what an expression means; the number may stand anywhere in the product.
func.func private @gelu(%x: tensor<4x64xf32>, %w: tensor<32x64xf32>) -> tensor<4x32xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.dense_gelu_erf" from "" (%p = %x : tensor<4x64xf32>, %q = %w : tensor<32x64xf32>) -> tensor<4x32xf32> {
    %half = relay.constant dense<0.5> : tensor<f32>
    %one = relay.constant dense<1.0> : tensor<f32>
    %root = relay.constant dense<1.41421356> : tensor<f32>
    %1 = relay.nn.dense %p, %q : (tensor<4x64xf32>, tensor<32x64xf32>) -> tensor<4x32xf32>
    %2 = relay.divide %1, %root : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %3 = relay.erf %2 : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %4 = relay.add %3, %one : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %5 = relay.multiply %1, %half : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %6 = relay.multiply %5, %4 : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    byoc.yield %6 : tensor<4x32xf32>
  }
  func.return %0 : tensor<4x32xf32>
}
// CHECK-LABEL: func.func private @gelu
// CHECK:         dnnl.matmul %x, %w {transpose_b = true, post_ops = [#dnnl.eltwise<gelu_erf>]}

// -----

// A result that is an input, or is returned twice, gets memory of its own.
func.func private @copies(%x: tensor<1x64x64x64xf32>) -> (tensor<1x64x64x64xf32>, tensor<1x64x64x64xf32>, tensor<64x4096xf32>) attributes {byoc.compiler = "dnnl"} {
  %0 = relay.nn.relu %x : (tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  %1 = relay.reshape %x {newshape = [64, 4096]} : (tensor<1x64x64x64xf32>) -> tensor<64x4096xf32>
  func.return %0, %0, %1 : tensor<1x64x64x64xf32>, tensor<1x64x64x64xf32>, tensor<64x4096xf32>
}
// CHECK-LABEL: func.func private @copies
// CHECK-NEXT:    %[[R:.*]] = dnnl.eltwise %x {algorithm = "relu"}
// CHECK-NEXT:    %[[V:.*]] = dnnl.view %x
// CHECK-NEXT:    %[[A:.*]] = dnnl.reorder %[[R]]
// CHECK-NEXT:    %[[B:.*]] = dnnl.reorder %[[V]]
// CHECK-NEXT:    func.return %[[R]], %[[A]], %[[B]]

// -----

// Other functions are left alone.
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @host
// CHECK-NEXT:    relay.nn.relu

// -----

// Scales and bias are in units of the result; a clip from the zero point on is a relu.
func.func private @quantised(%x: tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.qnn_conv2d_bias_clip" from "" (%p = %x : tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8> {
    %w = relay.constant dense<3> : tensor<1x1x1x1xi8>
    %x_zero = relay.constant dense<5> : tensor<ui8>
    %w_zero = relay.constant dense<0> : tensor<i8>
    %b = relay.constant dense<[10]> : tensor<1xi32>
    %scale = relay.constant dense<0.5> : tensor<f32>
    %c0 = relay.constant dense<0> : tensor<i32>
    %y_scale = relay.constant dense<0.25> : tensor<f32>
    %y_zero = relay.constant dense<7> : tensor<ui8>
    %1 = relay.qnn.conv2d %p, %w, %x_zero, %w_zero {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x2x2xui8>, tensor<1x1x1x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x2x2xi32>
    %2 = relay.nn.bias_add %1, %b : (tensor<1x1x2x2xi32>, tensor<1xi32>) -> tensor<1x1x2x2xi32>
    %3 = relay.qnn.requantize %2, %scale, %c0, %y_scale, %y_zero : (tensor<1x1x2x2xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x2x2xui8>
    %4 = relay.clip %3 {a_min = 7.0, a_max = 255.0} : (tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8>
    byoc.yield %4 : tensor<1x1x2x2xui8>
  }
  func.return %0 : tensor<1x1x2x2xui8>
}
// CHECK-LABEL: func.func private @quantised
// CHECK-DAG:     %[[W:.*]] = relay.constant {{.*}} : tensor<1x1x1x1xi8>
// CHECK-DAG:     %[[B:.*]] = relay.constant dense<2.000000e+01> : tensor<1xf32>
// CHECK-DAG:     %[[S:.*]] = relay.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-DAG:     %[[X:.*]] = relay.constant dense<5> : tensor<1xi32>
// CHECK-DAG:     %[[Y:.*]] = relay.constant dense<7> : tensor<1xi32>
// CHECK:         dnnl.quantized_convolution %x, %[[W]], %[[B]], %[[S]], %[[X]], %[[Y]] {{.*}}post_ops = [#dnnl.eltwise<relu>]

// -----

// The zero points of a sum are one number that is added to it.
func.func private @sum(%x: tensor<1x2x2x2xui8>, %y: tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xui8> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.qnn_add" from "" (%p = %x : tensor<1x2x2x2xui8>, %q = %y : tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xui8> {
    %a = relay.constant dense<0.5> : tensor<f32>
    %a_zero = relay.constant dense<4> : tensor<ui8>
    %b_zero = relay.constant dense<-2> : tensor<i8>
    %y_scale = relay.constant dense<0.25> : tensor<f32>
    %y_zero = relay.constant dense<10> : tensor<ui8>
    %1 = relay.qnn.add %p, %q, %a, %a_zero, %a, %b_zero, %y_scale, %y_zero : (tensor<1x2x2x2xui8>, tensor<1x2x2x2xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x2x2xui8>
    byoc.yield %1 : tensor<1x2x2x2xui8>
  }
  func.return %0 : tensor<1x2x2x2xui8>
}
// CHECK-LABEL: func.func private @sum
// CHECK:         dnnl.quantized_add %x, %y, {{.*}}post_ops = [#dnnl.eltwise<linear, 1.0, 6.0>]

// -----

func.func private @table(%x: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xi8> attributes {byoc.compiler = "dnnl"} {
  %t = relay.constant #relay.weight<"t", "00000000000000000000000000000001"> : tensor<256xi8>
  %0 = relay.qnn.lookup %x, %t : (tensor<1x2x2x2xui8>, tensor<256xi8>) -> tensor<1x2x2x2xi8>
  func.return %0 : tensor<1x2x2x2xi8>
}
// CHECK-LABEL: func.func private @table
// CHECK:         dnnl.lookup %x, %t

// -----

// Bytes of other parameters are looked up, too: here 0 to 255 in steps of a half.
func.func private @requantised(%x: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> attributes {byoc.compiler = "dnnl"} {
  %a = relay.constant dense<0.5> : tensor<f32>
  %b = relay.constant dense<1.0> : tensor<f32>
  %zero = relay.constant dense<0> : tensor<ui8>
  %0 = relay.qnn.requantize %x, %a, %zero, %b, %zero : (tensor<1x2x2x2xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x2x2xui8>
  func.return %0 : tensor<1x2x2x2xui8>
}
// CHECK-LABEL: func.func private @requantised
// CHECK:         %[[T:.*]] = relay.constant #relay.weight<"table", {{.*}} : tensor<256xui8>
// CHECK:         dnnl.lookup %x, %[[T]]

// -----

// A convolution adds the other operand of a sum, in units of that one: 0.5 / 0.25 for each
// product, then 0.25 / 0.125; of the zero points 10 - 4 * 2 is left.
func.func private @residual(%x: tensor<1x1x2x2xui8>, %y: tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.qnn_conv2d_sum" from "" (%p = %x : tensor<1x1x2x2xui8>, %q = %y : tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8> {
    %w = relay.constant dense<3> : tensor<1x1x1x1xi8>
    %zero = relay.constant dense<4> : tensor<ui8>
    %w_zero = relay.constant dense<0> : tensor<i8>
    %scale = relay.constant dense<0.5> : tensor<f32>
    %c0 = relay.constant dense<0> : tensor<i32>
    %b_scale = relay.constant dense<0.25> : tensor<f32>
    %y_scale = relay.constant dense<0.125> : tensor<f32>
    %y_zero = relay.constant dense<10> : tensor<ui8>
    %1 = relay.qnn.conv2d %p, %w, %zero, %w_zero {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x2x2xui8>, tensor<1x1x1x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x1x2x2xi32>
    %2 = relay.qnn.requantize %1, %scale, %c0, %b_scale, %zero : (tensor<1x1x2x2xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x2x2xui8>
    %3 = relay.qnn.add %q, %2, %b_scale, %zero, %b_scale, %zero, %y_scale, %y_zero : (tensor<1x1x2x2xui8>, tensor<1x1x2x2xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x2x2xui8>
    byoc.yield %3 : tensor<1x1x2x2xui8>
  }
  func.return %0 : tensor<1x1x2x2xui8>
}
// CHECK-LABEL: func.func private @residual
// CHECK-DAG:     %[[S:.*]] = relay.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-DAG:     %[[Z:.*]] = relay.constant dense<0> : tensor<1xi32>
// CHECK:         dnnl.quantized_convolution %x, %{{.*}}, %{{.*}}, %[[S]], %{{.*}}, %[[Z]], %y {{.*}}post_ops = [#dnnl.eltwise<clip, -4.0, 251.0>, #dnnl.binary<add>, #dnnl.eltwise<linear, 2.0, 2.0>]

// -----

// Of 16 bits are what primitives read and write; between those they compute in f32.
func.func private @bf16(%x: tensor<1x3x8x8xbf16>, %w: tensor<16x3x3x3xbf16>, %b: tensor<16xf32>, %y: tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xbf16> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.conv2d_bias_sum_relu" from "" (%p = %x : tensor<1x3x8x8xbf16>, %q = %w : tensor<16x3x3x3xbf16>, %r = %b : tensor<16xf32>, %s = %y : tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xbf16> {
    %1 = relay.nn.conv2d %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], out_dtype = f32} : (tensor<1x3x8x8xbf16>, tensor<16x3x3x3xbf16>) -> tensor<1x16x8x8xf32>
    %2 = relay.nn.bias_add %1, %r : (tensor<1x16x8x8xf32>, tensor<16xf32>) -> tensor<1x16x8x8xf32>
    %3 = relay.cast %s {dtype = f32} : (tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xf32>
    %4 = relay.add %3, %2 : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %5 = relay.nn.relu %4 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %6 = relay.cast %5 {dtype = bf16} : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xbf16>
    byoc.yield %6 : tensor<1x16x8x8xbf16>
  }
  func.return %0 : tensor<1x16x8x8xbf16>
}
// CHECK-LABEL: func.func private @bf16
// CHECK-NEXT:    %[[R:.*]] = dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.binary<add>, #dnnl.eltwise<relu>]} : (tensor<1x3x8x8xbf16>, tensor<16x3x3x3xbf16>, tensor<16xf32>, tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xbf16>
// CHECK-NEXT:    func.return %[[R]]

// -----

// A softmax between two products is one of f32.
func.func private @softmax(%a: tensor<4x8xbf16>, %b: tensor<8x8xbf16>) -> tensor<4x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  %1 = relay.nn.softmax %0 {axis = 1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = relay.cast %1 {dtype = bf16} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %3 = relay.nn.matmul %2, %b {out_dtype = f32} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func private @softmax
// CHECK-NEXT:    %[[M:.*]] = dnnl.matmul %a, %b {element = f32} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[S:.*]] = dnnl.softmax %[[M]] {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT:    %[[C:.*]] = dnnl.convert %[[S]] {element = bf16}
// CHECK-NEXT:    dnnl.matmul %[[C]], %b {element = f32}

// -----

// Channels that are places of a block become pixels.
func.func private @pixels(%x: tensor<1x12x2x4xui8>) -> tensor<1x3x4x8xui8> attributes {byoc.compiler = "dnnl"} {
  %0 = byoc.composite "dnnl.pixel_shuffle" from "" (%p = %x : tensor<1x12x2x4xui8>) -> tensor<1x3x4x8xui8> {
    %1 = relay.reshape %p {newshape = [1, 2, 2, 3, 2, 4]} : (tensor<1x12x2x4xui8>) -> tensor<1x2x2x3x2x4xui8>
    %2 = relay.transpose %1 {axes = [0, 3, 4, 1, 5, 2]} : (tensor<1x2x2x3x2x4xui8>) -> tensor<1x3x2x2x4x2xui8>
    %3 = relay.reshape %2 {newshape = [1, 3, 4, 8]} : (tensor<1x3x2x2x4x2xui8>) -> tensor<1x3x4x8xui8>
    byoc.yield %3 : tensor<1x3x4x8xui8>
  }
  func.return %0 : tensor<1x3x4x8xui8>
}
// CHECK-LABEL: func.func private @pixels
// CHECK-NEXT:    dnnl.pixel_shuffle %x {block = [2, 2]} : (tensor<1x12x2x4xui8>) -> tensor<1x3x4x8xui8>
