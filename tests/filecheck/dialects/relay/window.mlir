// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @nn_conv1d(%0: tensor<1x4x8xf32>, %1: tensor<6x2x3xf32>) -> tensor<1x6x4xf32> {
  %2 = relay.nn.conv1d %0, %1 {strides = [2], padding = [1, 0], dilation = [1], groups = 2} : (tensor<1x4x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x4xf32>
  func.return %2 : tensor<1x6x4xf32>
}
// CHECK-LABEL: func.func @nn_conv1d(
// CHECK-NEXT:    %2 = relay.nn.conv1d %0, %1 {strides = [2], padding = [1, 0], dilation = [1], groups = 2} : (tensor<1x4x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x4xf32>

func.func @nn_conv2d(%0: tensor<1x4x8x8xf32>, %1: tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32> {
  %2 = relay.nn.conv2d %0, %1 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>
  func.return %2 : tensor<1x6x4x4xf32>
}
// CHECK-LABEL: func.func @nn_conv2d(
// CHECK-NEXT:    %2 = relay.nn.conv2d %0, %1 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>

func.func @nn_conv3d(%0: tensor<1x4x8x8x8xf32>, %1: tensor<6x2x3x3x3xf32>) -> tensor<1x6x4x4x4xf32> {
  %2 = relay.nn.conv3d %0, %1 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], groups = 2} : (tensor<1x4x8x8x8xf32>, tensor<6x2x3x3x3xf32>) -> tensor<1x6x4x4x4xf32>
  func.return %2 : tensor<1x6x4x4x4xf32>
}
// CHECK-LABEL: func.func @nn_conv3d(
// CHECK-NEXT:    %2 = relay.nn.conv3d %0, %1 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], groups = 2} : (tensor<1x4x8x8x8xf32>, tensor<6x2x3x3x3xf32>) -> tensor<1x6x4x4x4xf32>

func.func @nn_conv1d_transpose(%0: tensor<1x4x8xf32>, %1: tensor<4x3x3xf32>) -> tensor<1x6x17xf32> {
  %2 = relay.nn.conv1d_transpose %0, %1 {strides = [2], padding = [1, 0], dilation = [1], output_padding = [1], groups = 2} : (tensor<1x4x8xf32>, tensor<4x3x3xf32>) -> tensor<1x6x17xf32>
  func.return %2 : tensor<1x6x17xf32>
}
// CHECK-LABEL: func.func @nn_conv1d_transpose(
// CHECK-NEXT:    %2 = relay.nn.conv1d_transpose %0, %1 {strides = [2], padding = [1, 0], dilation = [1], output_padding = [1], groups = 2} : (tensor<1x4x8xf32>, tensor<4x3x3xf32>) -> tensor<1x6x17xf32>

func.func @nn_conv2d_transpose(%0: tensor<1x4x8x8xf32>, %1: tensor<4x3x3x3xf32>) -> tensor<1x6x17x17xf32> {
  %2 = relay.nn.conv2d_transpose %0, %1 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], output_padding = [1, 1], groups = 2} : (tensor<1x4x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x17x17xf32>
  func.return %2 : tensor<1x6x17x17xf32>
}
// CHECK-LABEL: func.func @nn_conv2d_transpose(
// CHECK-NEXT:    %2 = relay.nn.conv2d_transpose %0, %1 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], output_padding = [1, 1], groups = 2} : (tensor<1x4x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x17x17xf32>

func.func @nn_conv3d_transpose(%0: tensor<1x4x8x8x8xf32>, %1: tensor<4x3x3x3x3xf32>) -> tensor<1x6x17x17x17xf32> {
  %2 = relay.nn.conv3d_transpose %0, %1 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], output_padding = [1, 1, 1], groups = 2} : (tensor<1x4x8x8x8xf32>, tensor<4x3x3x3x3xf32>) -> tensor<1x6x17x17x17xf32>
  func.return %2 : tensor<1x6x17x17x17xf32>
}
// CHECK-LABEL: func.func @nn_conv3d_transpose(
// CHECK-NEXT:    %2 = relay.nn.conv3d_transpose %0, %1 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], output_padding = [1, 1, 1], groups = 2} : (tensor<1x4x8x8x8xf32>, tensor<4x3x3x3x3xf32>) -> tensor<1x6x17x17x17xf32>

func.func @nn_max_pool1d(%0: tensor<1x4x8xf32>) -> tensor<1x4x4xf32> {
  %1 = relay.nn.max_pool1d %0 {strides = [2], padding = [1, 0], dilation = [1], pool_size = [3], ceil_mode = true} : (tensor<1x4x8xf32>) -> tensor<1x4x4xf32>
  func.return %1 : tensor<1x4x4xf32>
}
// CHECK-LABEL: func.func @nn_max_pool1d(
// CHECK-NEXT:    %1 = relay.nn.max_pool1d %0 {strides = [2], padding = [1, 0], dilation = [1], pool_size = [3], ceil_mode = true} : (tensor<1x4x8xf32>) -> tensor<1x4x4xf32>

func.func @nn_avg_pool1d(%0: tensor<1x4x8xf32>) -> tensor<1x4x4xf32> {
  %1 = relay.nn.avg_pool1d %0 {strides = [2], padding = [1, 0], dilation = [1], pool_size = [3], count_include_pad = true} : (tensor<1x4x8xf32>) -> tensor<1x4x4xf32>
  func.return %1 : tensor<1x4x4xf32>
}
// CHECK-LABEL: func.func @nn_avg_pool1d(
// CHECK-NEXT:    %1 = relay.nn.avg_pool1d %0 {strides = [2], padding = [1, 0], dilation = [1], pool_size = [3], count_include_pad = true} : (tensor<1x4x8xf32>) -> tensor<1x4x4xf32>

func.func @nn_max_pool2d(%0: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %1 = relay.nn.max_pool2d %0 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], pool_size = [3, 3], ceil_mode = true} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return %1 : tensor<1x4x4x4xf32>
}
// CHECK-LABEL: func.func @nn_max_pool2d(
// CHECK-NEXT:    %1 = relay.nn.max_pool2d %0 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], pool_size = [3, 3], ceil_mode = true} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>

func.func @nn_avg_pool2d(%0: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %1 = relay.nn.avg_pool2d %0 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], pool_size = [3, 3], count_include_pad = true} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return %1 : tensor<1x4x4x4xf32>
}
// CHECK-LABEL: func.func @nn_avg_pool2d(
// CHECK-NEXT:    %1 = relay.nn.avg_pool2d %0 {strides = [2, 2], padding = [1, 1, 0, 0], dilation = [1, 1], pool_size = [3, 3], count_include_pad = true} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>

func.func @nn_max_pool3d(%0: tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32> {
  %1 = relay.nn.max_pool3d %0 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], pool_size = [3, 3, 3], ceil_mode = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32>
  func.return %1 : tensor<1x4x4x4x4xf32>
}
// CHECK-LABEL: func.func @nn_max_pool3d(
// CHECK-NEXT:    %1 = relay.nn.max_pool3d %0 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], pool_size = [3, 3, 3], ceil_mode = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32>

func.func @nn_avg_pool3d(%0: tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32> {
  %1 = relay.nn.avg_pool3d %0 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], pool_size = [3, 3, 3], count_include_pad = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32>
  func.return %1 : tensor<1x4x4x4x4xf32>
}
// CHECK-LABEL: func.func @nn_avg_pool3d(
// CHECK-NEXT:    %1 = relay.nn.avg_pool3d %0 {strides = [2, 2, 2], padding = [1, 1, 1, 0, 0, 0], dilation = [1, 1, 1], pool_size = [3, 3, 3], count_include_pad = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x4x4x4xf32>

func.func @nn_global_max_pool1d(%0: tensor<1x4x5xf32>) -> tensor<1x4x1xf32> {
  %1 = relay.nn.global_max_pool1d %0 : (tensor<1x4x5xf32>) -> tensor<1x4x1xf32>
  func.return %1 : tensor<1x4x1xf32>
}
// CHECK-LABEL: func.func @nn_global_max_pool1d(
// CHECK-NEXT:    %1 = relay.nn.global_max_pool1d %0 : (tensor<1x4x5xf32>) -> tensor<1x4x1xf32>

func.func @nn_global_avg_pool1d(%0: tensor<1x4x5xf32>) -> tensor<1x4x1xf32> {
  %1 = relay.nn.global_avg_pool1d %0 : (tensor<1x4x5xf32>) -> tensor<1x4x1xf32>
  func.return %1 : tensor<1x4x1xf32>
}
// CHECK-LABEL: func.func @nn_global_avg_pool1d(
// CHECK-NEXT:    %1 = relay.nn.global_avg_pool1d %0 : (tensor<1x4x5xf32>) -> tensor<1x4x1xf32>

func.func @nn_global_max_pool2d(%0: tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32> {
  %1 = relay.nn.global_max_pool2d %0 : (tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32>
  func.return %1 : tensor<1x4x1x1xf32>
}
// CHECK-LABEL: func.func @nn_global_max_pool2d(
// CHECK-NEXT:    %1 = relay.nn.global_max_pool2d %0 : (tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32>

func.func @nn_global_avg_pool2d(%0: tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32> {
  %1 = relay.nn.global_avg_pool2d %0 : (tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32>
  func.return %1 : tensor<1x4x1x1xf32>
}
// CHECK-LABEL: func.func @nn_global_avg_pool2d(
// CHECK-NEXT:    %1 = relay.nn.global_avg_pool2d %0 : (tensor<1x4x5x5xf32>) -> tensor<1x4x1x1xf32>

func.func @nn_global_max_pool3d(%0: tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32> {
  %1 = relay.nn.global_max_pool3d %0 : (tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32>
  func.return %1 : tensor<1x4x1x1x1xf32>
}
// CHECK-LABEL: func.func @nn_global_max_pool3d(
// CHECK-NEXT:    %1 = relay.nn.global_max_pool3d %0 : (tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32>

func.func @nn_global_avg_pool3d(%0: tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32> {
  %1 = relay.nn.global_avg_pool3d %0 : (tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32>
  func.return %1 : tensor<1x4x1x1x1xf32>
}
// CHECK-LABEL: func.func @nn_global_avg_pool3d(
// CHECK-NEXT:    %1 = relay.nn.global_avg_pool3d %0 : (tensor<1x4x5x5x5xf32>) -> tensor<1x4x1x1x1xf32>
