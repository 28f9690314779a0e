// RUN: byoc-opt %s | byoc-opt | filecheck %s

// Layouts are part of types, the row-major one is not written; post-ops at their default are left out.
// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, %w: tensor<8x8x3x3xf32>,
                       %b: tensor<8xf32>, %y: tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) {
  // CHECK: dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.sum, #dnnl.eltwise<clip, 0.0, 6.0>]} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<8x8x3x3xf32>, tensor<8xf32>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  %0 = dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.sum, #dnnl.eltwise<clip, 0.0, 6.0>]} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<8x8x3x3xf32>, tensor<8xf32>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  // CHECK-NEXT: dnnl.convolution {{.*}}algorithm = "f4x3"
  %1 = dnnl.convolution %x, %w, %b, %y {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3", post_ops = [#dnnl.sum, #dnnl.eltwise<clip, 0.0, 6.0>]} : (tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>, tensor<8x8x3x3xf32>, tensor<8xf32>, tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>) -> tensor<1x8x4x4xf32, #dnnl.layout<"aBcd8b">>
  func.return
}

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<2x8x4x4xf32>, %c: tensor<8xf32>, %w: tensor<5x128xf32>, %d: tensor<8x4x2x2xf32>) {
  // CHECK-NEXT: dnnl.deconvolution %x, %d {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]}
  %0 = dnnl.deconvolution %x, %d {strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<2x8x4x4xf32>, tensor<8x4x2x2xf32>) -> tensor<2x4x8x8xf32>
  // CHECK-NEXT: dnnl.pooling %x {algorithm = "avg_include_padding", kernel = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]}
  %1 = dnnl.pooling %x {algorithm = "avg_include_padding", kernel = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<2x8x4x4xf32>) -> tensor<2x8x2x2xf32>
  // CHECK-NEXT: dnnl.batch_normalization %x, %c, %c, %c, %c {epsilon = 1.0e-05}
  %2 = dnnl.batch_normalization %x, %c, %c, %c, %c {epsilon = 1.0e-05} : (tensor<2x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.lrn %x {size = 5, alpha = 0.0001, beta = 0.75, k = 1.0}
  %3 = dnnl.lrn %x {size = 5, alpha = 0.0001, beta = 0.75, k = 1.0} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.softmax %x {axis = 3}
  %4 = dnnl.softmax %x {axis = 3} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.eltwise %x {algorithm = "linear", alpha = 2.0}
  %5 = dnnl.eltwise %x {algorithm = "linear", alpha = 2.0} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.activation %x {algorithm = "swish"} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %activated = dnnl.activation %x {algorithm = "swish"} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.binary %x, %{{.*}} {algorithm = "add", post_ops = [#dnnl.binary<mul>]}
  %6 = dnnl.binary %x, %5, %4 {algorithm = "add", post_ops = [#dnnl.binary<mul>]} : (tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.concat %x, %{{.*}} {axis = 1}
  %7 = dnnl.concat %x, %6 {axis = 1} : (tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) -> tensor<2x16x4x4xf32>
  // CHECK-NEXT: dnnl.view %x : (tensor<2x8x4x4xf32>) -> tensor<2x128xf32>
  %8 = dnnl.view %x : (tensor<2x8x4x4xf32>) -> tensor<2x128xf32>
  // CHECK-NEXT: dnnl.inner_product
  %9 = dnnl.inner_product %8, %w : (tensor<2x128xf32>, tensor<5x128xf32>) -> tensor<2x5xf32>
  // CHECK-NEXT: dnnl.matmul %{{.*}}, %w {transpose_b = true}
  %10 = dnnl.matmul %8, %w {transpose_b = true} : (tensor<2x128xf32>, tensor<5x128xf32>) -> tensor<2x5xf32>
  // CHECK-NEXT: dnnl.reorder %x : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32, #dnnl.layout<"acdb">>
  %11 = dnnl.reorder %x : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32, #dnnl.layout<"acdb">>
  // CHECK-NEXT: dnnl.eltwise %x {algorithm = "exp", threads = 1, milliseconds = 0.25}
  %12 = dnnl.eltwise %x {algorithm = "exp", threads = 1, milliseconds = 0.25} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // CHECK-NEXT: dnnl.eltwise %x {algorithm = "abs", threads = 1, concurrent = true}
  %13 = dnnl.eltwise %x {algorithm = "abs", threads = 1, concurrent = true} : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @quantized
func.func @quantized(%x: tensor<1x8x4x4xui8>, %w: tensor<8x8x1x1xi8>, %c: tensor<8xf32>, %z: tensor<1xi32>, %s: tensor<1xf32>) {
  // CHECK-NEXT: dnnl.quantized_convolution %x, %w, %c, %c, %z, %z {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], element = i8, post_ops = [#dnnl.eltwise<relu>]}
  %0 = dnnl.quantized_convolution %x, %w, %c, %c, %z, %z {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], element = i8, post_ops = [#dnnl.eltwise<relu>]} : (tensor<1x8x4x4xui8>, tensor<8x8x1x1xi8>, tensor<8xf32>, tensor<8xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x8x4x4xi8>
  // CHECK-NEXT: dnnl.quantized_add %x, %{{.*}}, %s, %s {element = ui8, post_ops = [#dnnl.eltwise<linear, 1.0, 3.5>]}
  %1 = dnnl.quantized_add %x, %0, %s, %s {element = ui8, post_ops = [#dnnl.eltwise<linear, 1.0, 3.5>]} : (tensor<1x8x4x4xui8>, tensor<1x8x4x4xi8>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x4x4xui8>
  func.return
}

// CHECK-LABEL: func.func @lookup
func.func @lookup(%x: tensor<1x8x4x4xui8>, %t: tensor<256xi8>) {
  // CHECK-NEXT: dnnl.lookup %x, %t : (tensor<1x8x4x4xui8>, tensor<256xi8>) -> tensor<1x8x4x4xi8>
  %0 = dnnl.lookup %x, %t : (tensor<1x8x4x4xui8>, tensor<256xi8>) -> tensor<1x8x4x4xi8>
  func.return
}

// CHECK-LABEL: func.func @quantized_matmul
func.func @quantized_matmul(%x: tensor<3x8xui8>, %w: tensor<5x8xi8>, %b: tensor<1x5xf32>, %s: tensor<1xf32>, %z: tensor<1xui8>) {
  // CHECK-NEXT: %[[Z:.*]] = dnnl.convert %z {element = i32} : (tensor<1xui8>) -> tensor<1xi32>
  %0 = dnnl.convert %z {element = i32} : (tensor<1xui8>) -> tensor<1xi32>
  // CHECK-NEXT: dnnl.quantized_matmul %x, %w, %b, %s, %[[Z]] {element = f32}
  %1 = dnnl.quantized_matmul %x, %w, %b, %s, %0 {element = f32} : (tensor<3x8xui8>, tensor<5x8xi8>, tensor<1x5xf32>, tensor<1xf32>, tensor<1xi32>) -> tensor<3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @normalized_concat
func.func @normalized_concat(%x: tensor<2x8x4x4xbf16>, %y: tensor<2x4x4x4xbf16>, %f: tensor<2x12xf32>) {
  // CHECK-NEXT: dnnl.normalized_concat %x, %y, %f {relu = true} : (tensor<2x8x4x4xbf16>, tensor<2x4x4x4xbf16>, tensor<2x12xf32>) -> tensor<2x12x4x4xbf16>
  %0 = dnnl.normalized_concat %x, %y, %f {relu = true} : (tensor<2x8x4x4xbf16>, tensor<2x4x4x4xbf16>, tensor<2x12xf32>) -> tensor<2x12x4x4xbf16>
  func.return
}
