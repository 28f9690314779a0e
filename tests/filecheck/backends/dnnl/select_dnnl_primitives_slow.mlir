// RUN: not byoc-opt %s -p 'select-dnnl-primitives' 2>&1 | filecheck %s

// The library has nothing else for windows with holes.
// CHECK: oneDNN has only reference code (ref:any) for dnnl.pooling, which is slower than the host
func.func private @slow(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x4x4xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.pooling %x {algorithm = "max", kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilation = [2, 2]} : (tensor<1x16x8x8xf32>) -> tensor<1x16x4x4xf32>
  func.return %0 : tensor<1x16x4x4xf32>
}
