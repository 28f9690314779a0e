// RUN: byoc-opt %s -p 'prepare-dnnl-regions{threads=2 layout=plain convolution=direct}' | filecheck %s
// RUN: not byoc-opt %s -p 'prepare-dnnl-regions{calibration="/nowhere.json"}' 2>&1 | filecheck %s --check-prefix REFUSED

// All that code generation reads is there.
func.func private @r(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  func.return %1 : tensor<1x16x8x8xf32>
}
// CHECK:      func.func private @r({{.*}}byoc.workspace = {{[0-9]+}} : i64
// CHECK:      dnnl.convolution %x, %w {{.*}}implementation = "{{.+}}"{{.*}}, offsets = [{{[0-9]+}}]
// CHECK-NEXT: dnnl.convolution {{.*}}implementation = "
// CHECK-NEXT: func.return

// REFUSED: error: '/nowhere.json' cannot be read
