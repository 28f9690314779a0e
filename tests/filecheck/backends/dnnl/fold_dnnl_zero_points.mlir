// RUN: byoc-opt %s -p 'fold-dnnl-zero-points' | filecheck %s

// Without padding: of the bias 5 * (1 + 2) * 0.5 is taken away, and 7 is added to it.
func.func private @whole(%x: tensor<1x2x4x4xui8>) -> tensor<1x1x4x4xui8> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<[[[[1]], [[2]]]]> : tensor<1x2x1x1xi8>
  %b = relay.constant dense<[1.0]> : tensor<1xf32>
  %s = relay.constant dense<[0.5]> : tensor<1xf32>
  %p = relay.constant dense<[5]> : tensor<1xi32>
  %q = relay.constant dense<[7]> : tensor<1xi32>
  %0 = dnnl.quantized_convolution %x, %w, %b, %s, %p, %q {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], post_ops = [#dnnl.eltwise<relu>], element = ui8} : (tensor<1x2x4x4xui8>, tensor<1x2x1x1xi8>, tensor<1xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x1x4x4xui8>
  func.return %0 : tensor<1x1x4x4xui8>
}
// CHECK-LABEL: func.func private @whole
// CHECK-DAG:     %[[B:.*]] = relay.constant dense<5.000000e-01> : tensor<1xf32>
// CHECK-DAG:     %[[P:.*]] = relay.constant dense<0> : tensor<1xi32>
// CHECK-DAG:     %[[Q:.*]] = relay.constant dense<0> : tensor<1xi32>
// CHECK:         dnnl.quantized_convolution %x, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {{.*}}post_ops = [#dnnl.eltwise<clip, 7.0, 255.0>]

// What pads has the zero point of the source, which stays.
func.func private @padded(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi8> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<2> : tensor<1x1x3x3xi8>
  %b = relay.constant dense<[1.0]> : tensor<1xf32>
  %s = relay.constant dense<[0.5]> : tensor<1xf32>
  %p = relay.constant dense<[5]> : tensor<1xi32>
  %q = relay.constant dense<[-7]> : tensor<1xi32>
  %0 = dnnl.quantized_convolution %x, %w, %b, %s, %p, %q {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], post_ops = [#dnnl.eltwise<clip, 0.0, 12.0>], element = i8} : (tensor<1x1x4x4xui8>, tensor<1x1x3x3xi8>, tensor<1xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x1x4x4xi8>
  func.return %0 : tensor<1x1x4x4xi8>
}
// CHECK-LABEL: func.func private @padded
// CHECK-DAG:     relay.constant dense<-6.000000e+00> : tensor<1xf32>
// CHECK-DAG:     relay.constant dense<5> : tensor<1xi32>
// CHECK:         dnnl.quantized_convolution {{.*}}post_ops = [#dnnl.eltwise<clip, -7.0, 5.0>]

// 255 * 127 * 2 is more than a bias of f32 has room for beside fractions.
func.func private @large(%x: tensor<2x2xui8>) -> tensor<2x1xui8> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<127> : tensor<1x2xi8>
  %b = relay.constant dense<[[1.0]]> : tensor<1x1xf32>
  %s = relay.constant dense<[1.0]> : tensor<1xf32>
  %p = relay.constant dense<[255]> : tensor<1xi32>
  %q = relay.constant dense<[0]> : tensor<1xi32>
  %0 = dnnl.quantized_matmul %x, %w, %b, %s, %p, %q {element = ui8} : (tensor<2x2xui8>, tensor<1x2xi8>, tensor<1x1xf32>, tensor<1xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2x1xui8>
  func.return %0 : tensor<2x1xui8>
}
// CHECK-LABEL: func.func private @large
// CHECK-DAG:     relay.constant dense<255> : tensor<1xi32>
// CHECK:         dnnl.quantized_matmul

// Nor are the zero points of results in f32 folded.
func.func private @numbers(%x: tensor<2x2xui8>) -> tensor<2x1xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant dense<1> : tensor<1x2xi8>
  %b = relay.constant dense<[[1.0]]> : tensor<1x1xf32>
  %s = relay.constant dense<[1.0]> : tensor<1xf32>
  %p = relay.constant dense<[3]> : tensor<1xi32>
  %0 = dnnl.quantized_matmul %x, %w, %b, %s, %p {element = f32} : (tensor<2x2xui8>, tensor<1x2xi8>, tensor<1x1xf32>, tensor<1xf32>, tensor<1xi32>) -> tensor<2x1xf32>
  func.return %0 : tensor<2x1xf32>
}
// CHECK-LABEL: func.func private @numbers
// CHECK-DAG:     relay.constant dense<3> : tensor<1xi32>
// CHECK:         dnnl.quantized_matmul
