// RUN: byoc-opt %s --split-input-file -p 'fuse-dnnl-concats' | filecheck %s

// Each norm reads all parts; the second concatenation has those of the first one.
func.func private @chain(%x: tensor<2x16x4x4xf32, #dnnl.layout<"acdb">>, %y: tensor<2x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<2x32x4x4xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<24xf32>
  %v = relay.constant dense<3.0> : tensor<24xf32>
  %n = relay.constant dense<1.0> : tensor<32xf32>
  %w = relay.constant dense<4.0> : tensor<32xf32>
  %0 = dnnl.concat %x, %y {axis = 1} : (tensor<2x16x4x4xf32, #dnnl.layout<"acdb">>, tensor<2x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.batch_normalization %0, %m, %v, %m, %m {epsilon = 1.0, relu = true} : (tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>
  %c = dnnl.eltwise %1 {algorithm = "tanh"} : (tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>
  %2 = dnnl.concat %0, %y {axis = 1} : (tensor<2x24x4x4xf32, #dnnl.layout<"acdb">>, tensor<2x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<2x32x4x4xf32, #dnnl.layout<"acdb">>
  %3 = dnnl.batch_normalization %2, %n, %w, %n, %n {epsilon = 0.0} : (tensor<2x32x4x4xf32, #dnnl.layout<"acdb">>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x32x4x4xf32, #dnnl.layout<"acdb">>
  func.return %3 : tensor<2x32x4x4xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @chain
// CHECK-NEXT:    %[[F:.*]] = relay.constant {{.*}} : tensor<2x24xf32>
// CHECK-NEXT:    dnnl.normalized_concat %x, %y, %[[F]] {relu = true}
// CHECK-NEXT:    dnnl.eltwise
// CHECK-NEXT:    %[[G:.*]] = relay.constant {{.*}} : tensor<2x32xf32>
// CHECK-NEXT:    %[[R:.*]] = dnnl.normalized_concat %x, %y, %y, %[[G]] : ({{.*}}) -> tensor<2x32x4x4xf32, #dnnl.layout<"acdb">>
// CHECK-NEXT:    func.return %[[R]]

// -----

// In one image, channels may be in blocks.
func.func private @blocks(%x: tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>, %y: tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">> attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<24xf32>
  %0 = dnnl.concat %x, %y {axis = 1} : (tensor<1x16x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
  %1 = dnnl.batch_normalization %0, %m, %m, %m, %m {epsilon = 1.0} : (tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
  func.return %1 : tensor<1x24x4x4xf32, #dnnl.layout<"aBcd8b">>
}
// CHECK-LABEL: func.func private @blocks
// CHECK-NOT:     dnnl.concat
// CHECK:         dnnl.normalized_concat %x, %y

// -----

// Not where something else reads what is joined.
func.func private @read(%x: tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>, %y: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<24xf32>
  %0 = dnnl.concat %x, %y {axis = 1} : (tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.batch_normalization %0, %m, %m, %m, %m {epsilon = 1.0} : (tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>
  %2 = dnnl.binary %0, %1 {algorithm = "add"} : (tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>
  func.return %2 : tensor<1x24x4x4xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @read
// CHECK-NOT:     dnnl.normalized_concat

// -----

// Not where a sum takes over the memory of a part.
func.func private @overwritten(%x: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, %w: tensor<8x8x1x1xf32>) -> (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>) attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<16xf32>
  %0 = dnnl.eltwise %x {algorithm = "tanh"} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.concat %0, %x {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  %2 = dnnl.convolution %x, %w, %0 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.sum]} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<8x8x1x1xf32>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>
  %3 = dnnl.batch_normalization %1, %m, %m, %m, %m {epsilon = 1.0} : (tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  func.return %2, %3 : tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @overwritten
// CHECK-NOT:     dnnl.normalized_concat

// -----

// Not several images in blocks of channels, nor row-major ones.
func.func private @layouts(%x: tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>, %y: tensor<1x8x4x4xf32>) -> (tensor<2x32x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32>) attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<32xf32>
  %n = relay.constant dense<1.0> : tensor<16xf32>
  %0 = dnnl.concat %x, %x {axis = 1} : (tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<2x16x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<2x32x4x4xf32, #dnnl.layout<"aBcd8b">>
  %1 = dnnl.batch_normalization %0, %m, %m, %m, %m {epsilon = 1.0} : (tensor<2x32x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x32x4x4xf32, #dnnl.layout<"aBcd8b">>
  %2 = dnnl.concat %y, %y {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x16x4x4xf32>
  %3 = dnnl.batch_normalization %2, %n, %n, %n, %n {epsilon = 1.0} : (tensor<1x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<1x16x4x4xf32>
  func.return %1, %3 : tensor<2x32x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<1x16x4x4xf32>
}
// CHECK-LABEL: func.func private @layouts
// CHECK-NOT:     dnnl.normalized_concat

// -----

// Not where the factors are no finite numbers: here the variance is less than zero.
func.func private @infinite(%x: tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %m = relay.constant dense<1.0> : tensor<16xf32>
  %v = relay.constant dense<-2.0> : tensor<16xf32>
  %0 = dnnl.concat %x, %x {axis = 1} : (tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>, tensor<1x8x4x4xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.batch_normalization %0, %m, %v, %m, %m {epsilon = 1.0} : (tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
  func.return %1 : tensor<1x16x4x4xf32, #dnnl.layout<"acdb">>
}
// CHECK-LABEL: func.func private @infinite
// CHECK-NOT:     dnnl.normalized_concat
