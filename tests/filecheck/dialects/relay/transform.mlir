// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @reshape(%0: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %1 = relay.reshape %0 {newshape = [3, -1]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
}
// CHECK-LABEL: func.func @reshape(
// CHECK-NEXT:    %1 = relay.reshape %0 {newshape = [3, -1]} : (tensor<2x3xf32>) -> tensor<3x2xf32>

func.func @transpose(%0: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %1 = relay.transpose %0 {axes = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  func.return %1 : tensor<4x2x3xf32>
}
// CHECK-LABEL: func.func @transpose(
// CHECK-NEXT:    %1 = relay.transpose %0 {axes = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>

func.func @squeeze(%0: tensor<2x1x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.squeeze %0 {axis = [1]} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @squeeze(
// CHECK-NEXT:    %1 = relay.squeeze %0 {axis = [1]} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>

func.func @expand_dims(%0: tensor<2x3xf32>) -> tensor<1x2x3x1xf32> {
  %1 = relay.expand_dims %0 {axis = [0, -1]} : (tensor<2x3xf32>) -> tensor<1x2x3x1xf32>
  func.return %1 : tensor<1x2x3x1xf32>
}
// CHECK-LABEL: func.func @expand_dims(
// CHECK-NEXT:    %1 = relay.expand_dims %0 {axis = [0, -1]} : (tensor<2x3xf32>) -> tensor<1x2x3x1xf32>

func.func @broadcast_to(%0: tensor<2x1xf32>) -> tensor<4x2x3xf32> {
  %1 = relay.broadcast_to %0 {shape = [4, 2, 3]} : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
  func.return %1 : tensor<4x2x3xf32>
}
// CHECK-LABEL: func.func @broadcast_to(
// CHECK-NEXT:    %1 = relay.broadcast_to %0 {shape = [4, 2, 3]} : (tensor<2x1xf32>) -> tensor<4x2x3xf32>

func.func @concatenate(%0: tensor<2x3xf32>, %1: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %2 = relay.concatenate %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  func.return %2 : tensor<2x7xf32>
}
// CHECK-LABEL: func.func @concatenate(
// CHECK-NEXT:    %2 = relay.concatenate %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>

func.func @split(%0: tensor<5x2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>) {
  %1, %2 = relay.split %0 {sections = [2, 3]} : (tensor<5x2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>)
  func.return %1, %2 : tensor<2x2xf32>, tensor<3x2xf32>
}
// CHECK-LABEL: func.func @split(
// CHECK-NEXT:    %1, %2 = relay.split %0 {sections = [2, 3]} : (tensor<5x2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>)

func.func @strided_slice(%0: tensor<5x4xf32>) -> tensor<2x4xf32> {
  %1 = relay.strided_slice %0 {begin = [1, 3], end = [5, -1], strides = [2, -1]} : (tensor<5x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @strided_slice(
// CHECK-NEXT:    %1 = relay.strided_slice %0 {begin = [1, 3], end = [5, -1], strides = [2, -1]} : (tensor<5x4xf32>) -> tensor<2x4xf32>

func.func @nn_pad(%0: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %1 = relay.nn.pad %0 {pad_width = [0, 0, 1, 2], pad_mode = "reflect"} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  func.return %1 : tensor<2x6xf32>
}
// CHECK-LABEL: func.func @nn_pad(
// CHECK-NEXT:    %1 = relay.nn.pad %0 {pad_width = [0, 0, 1, 2], pad_mode = "reflect"} : (tensor<2x3xf32>) -> tensor<2x6xf32>
