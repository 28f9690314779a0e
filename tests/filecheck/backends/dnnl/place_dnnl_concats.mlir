// RUN: byoc-opt %s --split-input-file -p 'place-dnnl-concats,place-dnnl-buffers' | filecheck %s

// Parts lie one after the other; what is in place of a part lies where it does.
func.func private @blocks(%x: tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<1.0> : tensor<8x16x1x1xf32>
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>
  %1 = dnnl.convolution %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<8x16x1x1xf32>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %2 = dnnl.activation %1 {algorithm = "swish"} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %3 = dnnl.concat %2, %0 {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
  %4 = dnnl.eltwise %3 {algorithm = "relu"} : (tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
  func.return %4 : tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
}
// CHECK:      func.func private @blocks({{.*}}byoc.workspace = 1536 : i64
// CHECK:      %[[B:.*]] = dnnl.eltwise %x {algorithm = "tanh", offsets = [512]}
// CHECK-NEXT: %[[A:.*]] = dnnl.convolution %x, {{.*}} offsets = [0]}
// CHECK-NEXT: %[[S:.*]] = dnnl.activation %[[A]] {algorithm = "swish"}
// CHECK-NEXT: %[[J:.*]] = dnnl.join %[[S]], %[[B]] {axis = 1}
// CHECK-NEXT: dnnl.eltwise %[[J]]

// -----

// What is joined may be joined to more. Of an output no part is in the workspace; what is read
// after it was joined keeps its memory.
func.func private @chain(%x: tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> (tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %1 = dnnl.eltwise %x {algorithm = "exp"} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %2 = dnnl.concat %0, %1 {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>
  %3 = dnnl.eltwise %0 {algorithm = "relu"} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %4 = dnnl.concat %3, %2 {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
  %5 = dnnl.eltwise %0 {algorithm = "abs"} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  func.return %4, %5 : tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
}
// CHECK:      func.func private @chain({{.*}}byoc.workspace = 0 : i64
// CHECK-NEXT: %[[A:.*]] = dnnl.eltwise %x {algorithm = "tanh"}
// CHECK-NEXT: %[[B:.*]] = dnnl.eltwise %x {algorithm = "exp"}
// CHECK-NEXT: %[[J:.*]] = dnnl.join %[[A]], %[[B]] {axis = 1}
// CHECK-NEXT: %[[C:.*]] = dnnl.eltwise %[[A]] {algorithm = "relu"}
// CHECK-NEXT: dnnl.join %[[C]], %[[J]] {axis = 1}

// -----

// Of several images the parts of each would lie apart; so would channels that are last.
func.func private @apart(%x: tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>, %y: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> (tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %1 = dnnl.eltwise %x {algorithm = "exp"} : (tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %2 = dnnl.concat %0, %1 {axis = 1} : (tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<2x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>
  %3 = dnnl.eltwise %y {algorithm = "tanh"} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>
  %4 = dnnl.eltwise %y {algorithm = "exp"} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>
  %5 = dnnl.concat %3, %4 {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  func.return %2, %5 : tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @apart
// CHECK-NOT:   dnnl.join

// -----

// Not inputs, what is joined twice, and what a sum overwrites.
func.func private @kept(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x8x4x4xf32>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %1 = dnnl.concat %0, %x {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  %2 = dnnl.eltwise %x {algorithm = "exp"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %3 = dnnl.concat %2, %2 {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  %4 = dnnl.eltwise %x {algorithm = "abs"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %5 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %6 = dnnl.concat %4, %5 {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  %7 = dnnl.convolution %x, %w, %4 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.sum]} : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return %1, %3, %6, %7 : tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x8x4x4xf32>
}
// CHECK-LABEL: func.func private @kept
// CHECK-NOT:   dnnl.join

// -----

// Not what is returned by itself.
func.func private @returned(%x: tensor<1x8x4x4xf32>) -> (tensor<1x16x4x4xf32>, tensor<128xf32>) attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %1 = dnnl.eltwise %x {algorithm = "exp"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = dnnl.concat %0, %1 {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  %3 = dnnl.view %1 : (tensor<1x8x4x4xf32>) -> tensor<128xf32>
  func.return %2, %3 : tensor<1x16x4x4xf32>, tensor<128xf32>
}
// CHECK-LABEL: func.func private @returned
// CHECK-NOT:   dnnl.join
