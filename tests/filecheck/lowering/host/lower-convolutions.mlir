// RUN: byoc-opt %s --split-input-file -p 'lower-convolutions{threads=2}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'lower-convolutions{threads=0}' | filecheck %s --check-prefix ALONE

// The bias, the sum and relu are the kernel's.
func.func @chain(%x: tensor<1x16x8x8xf32>, %r: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = relay.constant dense<0.5> : tensor<16x16x3x3xf32>
  %b = relay.constant dense<1.0> : tensor<16xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3"} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  %1 = relay.nn.bias_add %0, %b {axis = 1} : (tensor<1x16x8x8xf32>, tensor<16xf32>) -> tensor<1x16x8x8xf32>
  %2 = relay.add %r, %1 : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %3 = relay.nn.relu %2 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  func.return %3 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func @chain
// CHECK-SAME:  (%[[X:.*]]: tensor<1x16x8x8xf32>, %[[R:.*]]: tensor<1x16x8x8xf32>)
// CHECK-NOT:   relay.nn
// CHECK:       %[[SOURCE:.*]] = linalg.generic {{.*}} doc = "channels_last"} ins(%[[X]]
// CHECK:       %[[WEIGHTS:.*]] = relay.constant #relay.weight<"packed_weight"
// CHECK:       %[[BIAS:.*]] = relay.constant {{.*}} : tensor<{{[0-9]+}}xf32>
// CHECK:       %[[RESIDUAL:.*]] = linalg.generic {{.*}} doc = "channels_last"} ins(%[[R]]
// CHECK:       %[[NUMBERS:.*]] = relay.constant #relay.weight<"parameters"
// CHECK:       %[[SUM:.*]], %{{.*}} = host.kernel "relu" %[[SOURCE]], %[[WEIGHTS]], %[[BIAS]], %[[RESIDUAL]], %[[NUMBERS]]
// CHECK-SAME:  -> (tensor<1x8x8x16xf32>, tensor<{{[0-9]+}}xf32>)
// CHECK-NOT:   memref.store
// CHECK:       llvm.call @[[CALL:byoc_winograd_f4x3_.*_bias_of_buffers]](
// CHECK:       %[[RESULT:.*]] = linalg.generic {{.*}} doc = "channels_first"} ins(%[[SUM]]
// CHECK:       func.return %[[RESULT]]
// CHECK:       llvm.call @GOMP_parallel
// CHECK:       llvm.func internal @[[CALL]](

// Without an OpenMP runtime, nothing of it is mentioned.
// ALONE-LABEL: func.func @chain
// ALONE-NOT:   omp

// -----

// Another schedule: panels of three vectors.
func.func @panels(%x: tensor<1x16x8x8xf32>) -> tensor<1x192x8x8xf32> {
  %w = relay.constant dense<0.5> : tensor<192x16x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], algorithm = "implicit_gemm", schedule = "panels=3"} : (tensor<1x16x8x8xf32>, tensor<192x16x1x1xf32>) -> tensor<1x192x8x8xf32>
  func.return %0 : tensor<1x192x8x8xf32>
}
// CHECK-LABEL: func.func @panels
// CHECK:       llvm.call @byoc_implicit_gemm_{{[0-9]+}}x3x

// -----

// Code for its numbers alone, which LLVM optimises: it loads none of them.
func.func @constants(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = relay.constant dense<0.5> : tensor<16x16x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3", schedule = "constants"} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func @constants
// CHECK:       llvm.call @byoc_winograd_f4x3_{{.*}}_of_[[NUMBERS:[0-9a-f]+]]_of_buffers
// CHECK:       llvm.func internal @byoc_winograd_kernel_{{.*}}_of_[[NUMBERS]](
// CHECK-NOT:   byoc.vectorised
// CHECK:       llvm.func internal @byoc_winograd_product_{{.*}}_of_[[NUMBERS]](
// CHECK-NOT:   !llvm.ptr -> i64
// CHECK:       llvm.func internal

// -----

// Images of few channels are padded while their planes are laid into each other.
func.func @image(%x: tensor<1x3x9x8xf32>) -> tensor<1x16x5x4xf32> {
  %w = relay.constant dense<0.5> : tensor<16x3x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "implicit_gemm"} : (tensor<1x3x9x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x5x4xf32>
  func.return %0 : tensor<1x16x5x4xf32>
}
// CHECK-LABEL: func.func @image
// CHECK-NOT:   channels_last
// CHECK:       %[[PIXELS:.*]] = host.kernel "conv2d" %{{.*}} -> tensor<1x11x10x3xf32>
// CHECK:       host.kernel "conv2d" %[[PIXELS]],
// CHECK:       llvm.call @byoc_implicit_gemm_{{.*}}_by9_

// -----

// A convolution without an algorithm stays for the loops.
func.func @loops(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = relay.constant dense<0.5> : tensor<16x16x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  func.return %0 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func @loops
// CHECK:       relay.nn.conv2d
