// RUN: byoc-opt %s --split-input-file -p 'choose-convolution-algorithms{algorithm=f4x3},lower-convolutions{threads=0},keep-channels-last' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'choose-convolution-algorithms{algorithm=implicit_gemm},lower-convolutions{threads=0}' | filecheck %s --check-prefix PRODUCT

// Sizes are words that the kernel is told; its workspace is the same for all.
relay.symbol @n {min = 0, hint = 2}
relay.symbol @h {min = 1, hint = 24}
relay.symbol @w {min = 1, hint = 24}
func.func @main(%x: tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>) -> tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>> {
  %0 = relay.constant dense<0.5> : tensor<16x16x3x3xf32>
  %1 = relay.nn.conv2d %x, %0 {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>
  %2 = relay.constant dense<0.25> : tensor<16x16x3x3xf32>
  %3 = relay.nn.conv2d %1, %2 {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>
  %4 = relay.nn.relu %3 : (tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>) -> tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>
  func.return %4 : tensor<?x16x?x?xf32, #relay.shape<[n, 16, h, w]>>
}
// CHECK-LABEL: func.func @main
// CHECK:       linalg.generic {{.*}} doc = "channels_last"}
// CHECK:       %[[FIRST:.*]], %{{.*}} = host.kernel "conv2d" {{.*}} -> (tensor<?x?x?x16xf32, #relay.shape<[n, h, w, 16]>>, tensor<{{[0-9]+}}xf32>)
// CHECK:       host.size <[floordiv(h + 3, 4)*floordiv(w + 3, 4)*n]> : index
// CHECK:       "memref.copy"(%{{.*}}, %[[WORDS:.*]]) : (memref<[[COUNT:[0-9]+]]xi64>, memref<[[COUNT]]xi64>) -> ()
// CHECK:       memref.store %{{.*}}, %[[WORDS]]
// CHECK:       llvm.call @byoc_winograd_f4x3_{{.*}}_of_buffers(
// CHECK-NOT:   channels_
// CHECK:       host.kernel "relu" %[[FIRST]]
// CHECK:       linalg.generic {{.*}} doc = "channels_first"}

// Rows of any width: long strips, and short ones, of which the last repeats a pixel.
// Without limits, the lower limit is minus infinity.
// PRODUCT-LABEL: func.func @main
// PRODUCT:       llvm.call @byoc_implicit_gemm_{{.*}}_padded_relu_any_of_buffers(
// PRODUCT:       llvm.call @byoc_implicit_gemm_{{.*}}_padded_relu_any_of_buffers(
// PRODUCT:       llvm.func internal @byoc_implicit_gemm_kernel_{{.*}}_padded_relu(
// PRODUCT:       llvm.func internal @byoc_implicit_gemm_kernel_{{.*}}_padded_clamped_relu(
// PRODUCT-NOT:   llvm.func internal @byoc_implicit_gemm_kernel_

// -----

// Windows of one pixel: all pixels of all images are one piece.
relay.symbol @n {min = 0, hint = 2}
relay.symbol @h {min = 1, hint = 24}
func.func @main(%x: tensor<?x16x?x24xf32, #relay.shape<[n, 16, h, 24]>>) -> tensor<?x16x?x24xf32, #relay.shape<[n, 16, h, 24]>> {
  %0 = relay.constant dense<0.5> : tensor<16x16x1x1xf32>
  %1 = relay.nn.conv2d %x, %0 {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<?x16x?x24xf32, #relay.shape<[n, 16, h, 24]>>, tensor<16x16x1x1xf32>) -> tensor<?x16x?x24xf32, #relay.shape<[n, 16, h, 24]>>
  func.return %1 : tensor<?x16x?x24xf32, #relay.shape<[n, 16, h, 24]>>
}
// PRODUCT-LABEL: func.func @main
// PRODUCT:       host.size <[24*h*n]> : index
// PRODUCT:       llvm.call @byoc_implicit_gemm_{{.*}}_none_any_of_buffers(
