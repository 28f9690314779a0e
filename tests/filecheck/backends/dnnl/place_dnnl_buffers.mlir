// RUN: byoc-opt %s -p 'place-dnnl-buffers' | filecheck %s

// The third result takes the place of the first, which is dead by then; the last one is an output.
func.func private @chain(%x: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = dnnl.eltwise %0 {algorithm = "abs"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = dnnl.eltwise %1 {algorithm = "exp"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %3 = dnnl.eltwise %2 {algorithm = "tanh"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %3 : tensor<4x64xf32>
}
// CHECK:      func.func private @chain({{.*}}byoc.workspace = 2048 : i64
// CHECK-NEXT: dnnl.eltwise %x {algorithm = "relu", offsets = [0]}
// CHECK-NEXT: dnnl.eltwise %{{.*}} {algorithm = "abs", offsets = [1024]}
// CHECK-NEXT: dnnl.eltwise %{{.*}} {algorithm = "exp", offsets = [0]}
// CHECK-NEXT: dnnl.eltwise %{{.*}} {algorithm = "tanh"}

// A view and an activation are in the memory of their operand; a scratchpad is needed by one op.
func.func private @shared(%x: tensor<4x64xf32>) -> tensor<256xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu", scratchpad_bytes = 100} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = dnnl.activation %0 {algorithm = "swish"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = dnnl.view %1 : (tensor<4x64xf32>) -> tensor<256xf32>
  %3 = dnnl.eltwise %2 {algorithm = "tanh"} : (tensor<256xf32>) -> tensor<256xf32>
  func.return %3 : tensor<256xf32>
}
// CHECK:      func.func private @shared({{.*}}byoc.workspace = 1152 : i64
// CHECK-NEXT: dnnl.eltwise %x {algorithm = "relu", scratchpad_bytes = 100, offsets = [0], scratchpad_offset = 1024}
// CHECK-NEXT: dnnl.activation %{{.*}} {algorithm = "swish"}

// What runs at the same time shares nothing.
func.func private @concurrent(%x: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu", threads = 1, scratchpad_bytes = 64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = dnnl.eltwise %x {algorithm = "abs", threads = 1, concurrent = true, scratchpad_bytes = 64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = dnnl.binary %0, %1 {algorithm = "add"} : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %2 : tensor<4x64xf32>
}
// CHECK:      func.func private @concurrent({{.*}}byoc.workspace = 2176 : i64
// CHECK-NEXT: dnnl.eltwise %x {{.*}}, offsets = [0], scratchpad_offset = 2048}
// CHECK-NEXT: dnnl.eltwise %x {{.*}}, offsets = [1024], scratchpad_offset = 2112}
