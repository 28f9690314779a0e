// RUN: byoc-opt %s --split-input-file -p 'decompose-transposed-convolutions,convert-relay-to-linalg' | filecheck %s

// A window that does not reach beyond the padding needs the whole of it, whatever the size is.
relay.symbol @h {min = 1, hint = 24}
func.func @pool(%x: tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>) -> tensor<1x2x?x4xf32, #relay.shape<[1, 2, floordiv(h + 1, 2), 4]>> {
  %0 = relay.nn.max_pool2d %x {pool_size = [3, 2], strides = [2, 2], padding = [1, 0, 1, 0], dilation = [1, 1]} : (tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>) -> tensor<1x2x?x4xf32, #relay.shape<[1, 2, floordiv(h + 1, 2), 4]>>
  func.return %0 : tensor<1x2x?x4xf32, #relay.shape<[1, 2, floordiv(h + 1, 2), 4]>>
}
// CHECK-LABEL: func.func @pool
// CHECK:       doc = "fill"} outs({{.*}} : tensor<1x2x?x8xf32, #relay.shape<[1, 2, h + 2, 8]>>)
// CHECK:       tensor.insert_slice %x

// -----

// What a window counts is computed where padding does not count.
relay.symbol @h {min = 1, hint = 24}
func.func @mean(%x: tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>) -> tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>> {
  %0 = relay.nn.avg_pool2d %x {pool_size = [3, 3], strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>) -> tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>
  func.return %0 : tensor<1x2x?x8xf32, #relay.shape<[1, 2, h, 8]>>
}
// CHECK-LABEL: func.func @mean
// CHECK:       %[[COUNTS:.*]] = host.kernel "avg_pool2d" : () -> tensor<?x8xf32, #relay.shape<[h, 8]>>
// CHECK:       arith.divf

// -----

// The results of two places are put side by side: of each as many as there are pixels.
relay.symbol @w {min = 1, hint = 24}
func.func @transposed(%x: tensor<1x2x?xf32, #relay.shape<[1, 2, w]>>) -> tensor<1x3x?xf32, #relay.shape<[1, 3, 2*w]>> {
  %0 = relay.constant dense<0.5> : tensor<2x3x2xf32>
  %1 = relay.nn.conv1d_transpose %x, %0 {strides = [2], padding = [0, 0], dilation = [1], output_padding = [0]} : (tensor<1x2x?xf32, #relay.shape<[1, 2, w]>>, tensor<2x3x2xf32>) -> tensor<1x3x?xf32, #relay.shape<[1, 3, 2*w]>>
  func.return %1 : tensor<1x3x?xf32, #relay.shape<[1, 3, 2*w]>>
}
// CHECK-LABEL: func.func @transposed
// CHECK-NOT:   conv1d_transpose
// CHECK:       %[[SIZE:.*]] = host.size <[w]> : index
// CHECK:       tensor.extract_slice %{{.*}}[0, 0, 0] [1, 3, %[[SIZE]]] [1, 1, 1]
// CHECK:       tensor.insert_slice {{.*}} [1, 1, 2]

// -----

// What a resized axis reads is a table, computed from the sizes.
relay.symbol @w {min = 1, hint = 24}
func.func @resized(%x: tensor<3x?xf32, #relay.shape<[3, w]>>) -> tensor<3x?xf32, #relay.shape<[3, 2*w]>> {
  %0 = relay.image.resize %x {size = #relay.shape<[3, 2*w]>, method = "linear"} : (tensor<3x?xf32, #relay.shape<[3, w]>>) -> tensor<3x?xf32, #relay.shape<[3, 2*w]>>
  func.return %0 : tensor<3x?xf32, #relay.shape<[3, 2*w]>>
}
// CHECK-LABEL: func.func @resized
// CHECK:       %[[PLACES:.*]], %[[WEIGHTS:.*]], %[[OUTSIDE:.*]] = host.kernel "resize" : () -> (tensor<?x2xi64, #relay.shape<[2*w, 2]>>, tensor<?x2xf32, #relay.shape<[2*w, 2]>>, tensor<?xi1, #relay.shape<[2*w]>>)
// CHECK:       host.kernel "resize" prefer_no_gather %x, %[[PLACES]], %[[WEIGHTS]], %[[OUTSIDE]]

// -----

// Elements before and behind an axis are computed from where they stand.
relay.symbol @w {min = 1, hint = 24}
func.func @padded(%x: tensor<3x?xf32, #relay.shape<[3, w]>>) -> tensor<3x?xf32, #relay.shape<[3, w + 3]>> {
  %0 = relay.nn.pad %x {pad_width = [0, 0, 1, 2], pad_mode = "edge"} : (tensor<3x?xf32, #relay.shape<[3, w]>>) -> tensor<3x?xf32, #relay.shape<[3, w + 3]>>
  func.return %0 : tensor<3x?xf32, #relay.shape<[3, w + 3]>>
}
// CHECK-LABEL: func.func @padded
// CHECK:       %[[BEFORE:.*]] = host.kernel "pad" %x : {{.*}} -> tensor<3x1xf32>
// CHECK:       %[[BEHIND:.*]] = host.kernel "pad" %x : {{.*}} -> tensor<3x2xf32>
// CHECK:       tensor.insert_slice %[[BEFORE]]
// CHECK:       tensor.insert_slice %x
// CHECK:       tensor.insert_slice %[[BEHIND]]
