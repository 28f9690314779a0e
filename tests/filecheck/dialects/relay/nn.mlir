// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @nn_dense(%0: tensor<2x3xf32>, %1: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @nn_dense(
// CHECK-NEXT:    %2 = relay.nn.dense %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>

func.func @nn_matmul(%0: tensor<5x2x3xf32>, %1: tensor<4x3xf32>) -> tensor<5x2x4xf32> {
  %2 = relay.nn.matmul %0, %1 {transpose_b = true} : (tensor<5x2x3xf32>, tensor<4x3xf32>) -> tensor<5x2x4xf32>
  func.return %2 : tensor<5x2x4xf32>
}
// CHECK-LABEL: func.func @nn_matmul(
// CHECK-NEXT:    %2 = relay.nn.matmul %0, %1 {transpose_b = true} : (tensor<5x2x3xf32>, tensor<4x3xf32>) -> tensor<5x2x4xf32>

func.func @nn_bias_add(%0: tensor<2x3x4xf32>, %1: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %2 = relay.nn.bias_add %0, %1 {axis = -1} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @nn_bias_add(
// CHECK-NEXT:    %2 = relay.nn.bias_add %0, %1 {axis = -1} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>

func.func @nn_batch_norm(%0: tensor<1x2x3xf32>, %1: tensor<2xf32>, %2: tensor<2xf32>, %3: tensor<2xf32>, %4: tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>) {
  %5, %6, %7 = relay.nn.batch_norm %0, %1, %2, %3, %4 {epsilon = 0.001} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %5, %6, %7 : tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @nn_batch_norm(
// CHECK-NEXT:    %5, %6, %7 = relay.nn.batch_norm %0, %1, %2, %3, %4 {epsilon = 0.001} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>)

func.func @nn_layer_norm(%0: tensor<2x3x4xf32>, %1: tensor<3x4xf32>, %2: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %3 = relay.nn.layer_norm %0, %1, %2 {axis = 1} : (tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  func.return %3 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @nn_layer_norm(
// CHECK-NEXT:    %3 = relay.nn.layer_norm %0, %1, %2 {axis = 1} : (tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>

func.func @nn_lrn(%0: tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> {
  %1 = relay.nn.lrn %0 {size = 3, alpha = 1.0e-05} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  func.return %1 : tensor<1x4x2x2xf32>
}
// CHECK-LABEL: func.func @nn_lrn(
// CHECK-NEXT:    %1 = relay.nn.lrn %0 {size = 3, alpha = 1.0e-05} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>

func.func @nn_relu(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.nn.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @nn_relu(
// CHECK-NEXT:    %1 = relay.nn.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @nn_leaky_relu(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.nn.leaky_relu %0 {alpha = 0.1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @nn_leaky_relu(
// CHECK-NEXT:    %1 = relay.nn.leaky_relu %0 {alpha = 0.1} : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @nn_prelu(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.nn.prelu %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @nn_prelu(
// CHECK-NEXT:    %2 = relay.nn.prelu %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

// -----

func.func @products_of_halves(%0: tensor<2x3xbf16>, %1: tensor<4x3xbf16>) -> tensor<2x4xf32> {
  %2 = relay.nn.dense %0, %1 {out_dtype = f32} : (tensor<2x3xbf16>, tensor<4x3xbf16>) -> tensor<2x4xf32>
  %3 = relay.nn.matmul %0, %1 {transpose_b = true, out_dtype = f32} : (tensor<2x3xbf16>, tensor<4x3xbf16>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @products_of_halves(
// CHECK-NEXT:    relay.nn.dense %0, %1 {out_dtype = f32} : (tensor<2x3xbf16>, tensor<4x3xbf16>) -> tensor<2x4xf32>
// CHECK-NEXT:    relay.nn.matmul %0, %1 {transpose_b = true, out_dtype = f32} : (tensor<2x3xbf16>, tensor<4x3xbf16>) -> tensor<2x4xf32>
