// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @nn_lstm(%0: tensor<5x2x1x16xf32>, %1: tensor<2x4x16xf32>, %2: tensor<2x1x4xf32>, %3: tensor<2x1x4xf32>) -> (tensor<5x2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) {
  %4, %5, %6 = relay.nn.lstm %0, %1, %2, %3 {direction = "bidirectional"} : (tensor<5x2x1x16xf32>, tensor<2x4x16xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> (tensor<5x2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>)
  func.return %4, %5, %6 : tensor<5x2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>
}
// CHECK-LABEL: func.func @nn_lstm(
// CHECK-NEXT:    %4, %5, %6 = relay.nn.lstm %0, %1, %2, %3 {direction = "bidirectional"} : (tensor<5x2x1x16xf32>, tensor<2x4x16xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> (tensor<5x2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>)

func.func @nn_gru(%0: tensor<5x1x1x12xf32>, %1: tensor<1x4x12xf32>, %2: tensor<1x12xf32>, %3: tensor<1x1x4xf32>) -> (tensor<5x1x1x4xf32>, tensor<1x1x4xf32>) {
  %4, %5 = relay.nn.gru %0, %1, %2, %3 {linear_before_reset = true} : (tensor<5x1x1x12xf32>, tensor<1x4x12xf32>, tensor<1x12xf32>, tensor<1x1x4xf32>) -> (tensor<5x1x1x4xf32>, tensor<1x1x4xf32>)
  func.return %4, %5 : tensor<5x1x1x4xf32>, tensor<1x1x4xf32>
}
// CHECK-LABEL: func.func @nn_gru(
// CHECK-NEXT:    %4, %5 = relay.nn.gru %0, %1, %2, %3 {linear_before_reset = true} : (tensor<5x1x1x12xf32>, tensor<1x4x12xf32>, tensor<1x12xf32>, tensor<1x1x4xf32>) -> (tensor<5x1x1x4xf32>, tensor<1x1x4xf32>)

func.func @rounded_weight(%0: tensor<5x1x1x16xf32>, %1: tensor<1x4x16xbf16>, %2: tensor<1x1x4xf32>) -> tensor<5x1x1x4xf32> {
  %3, %4, %5 = relay.nn.lstm %0, %1, %2, %2 : (tensor<5x1x1x16xf32>, tensor<1x4x16xbf16>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> (tensor<5x1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  func.return %3 : tensor<5x1x1x4xf32>
}
// CHECK-LABEL: func.func @rounded_weight(
// CHECK-NEXT:    relay.nn.lstm %0, %1, %2, %2 : (tensor<5x1x1x16xf32>, tensor<1x4x16xbf16>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> (tensor<5x1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
