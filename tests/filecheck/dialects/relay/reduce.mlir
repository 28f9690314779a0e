// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @sum(%0: tensor<2x3x4xf32>) -> tensor<1x3x1xf32> {
  %1 = relay.sum %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  func.return %1 : tensor<1x3x1xf32>
}
// CHECK-LABEL: func.func @sum(
// CHECK-NEXT:    %1 = relay.sum %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>

func.func @mean(%0: tensor<2x3x4xf32>) -> tensor<1x3x1xf32> {
  %1 = relay.mean %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  func.return %1 : tensor<1x3x1xf32>
}
// CHECK-LABEL: func.func @mean(
// CHECK-NEXT:    %1 = relay.mean %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>

func.func @prod(%0: tensor<2x3x4xf32>) -> tensor<1x3x1xf32> {
  %1 = relay.prod %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  func.return %1 : tensor<1x3x1xf32>
}
// CHECK-LABEL: func.func @prod(
// CHECK-NEXT:    %1 = relay.prod %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>

func.func @max(%0: tensor<2x3x4xf32>) -> tensor<1x3x1xf32> {
  %1 = relay.max %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  func.return %1 : tensor<1x3x1xf32>
}
// CHECK-LABEL: func.func @max(
// CHECK-NEXT:    %1 = relay.max %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>

func.func @min(%0: tensor<2x3x4xf32>) -> tensor<1x3x1xf32> {
  %1 = relay.min %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  func.return %1 : tensor<1x3x1xf32>
}
// CHECK-LABEL: func.func @min(
// CHECK-NEXT:    %1 = relay.min %0 {axis = [0, -1], keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>

func.func @argmax(%0: tensor<2x3x4xf32>) -> tensor<2x4xi64> {
  %1 = relay.argmax %0 {axis = [1], select_last_index = true} : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
  func.return %1 : tensor<2x4xi64>
}
// CHECK-LABEL: func.func @argmax(
// CHECK-NEXT:    %1 = relay.argmax %0 {axis = [1], select_last_index = true} : (tensor<2x3x4xf32>) -> tensor<2x4xi64>

func.func @argmin(%0: tensor<2x3x4xf32>) -> tensor<2x4xi64> {
  %1 = relay.argmin %0 {axis = [1], select_last_index = true} : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
  func.return %1 : tensor<2x4xi64>
}
// CHECK-LABEL: func.func @argmin(
// CHECK-NEXT:    %1 = relay.argmin %0 {axis = [1], select_last_index = true} : (tensor<2x3x4xf32>) -> tensor<2x4xi64>

func.func @nn_softmax(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.nn.softmax %0 {axis = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @nn_softmax(
// CHECK-NEXT:    %1 = relay.nn.softmax %0 {axis = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @nn_log_softmax(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.nn.log_softmax %0 {axis = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @nn_log_softmax(
// CHECK-NEXT:    %1 = relay.nn.log_softmax %0 {axis = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
