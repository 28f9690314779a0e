// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @take(%0: tensor<5x4xf32>, %1: tensor<2x3xi64>) -> tensor<5x2x3xf32> {
  %2 = relay.take %0, %1 {axis = 1} : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<5x2x3xf32>
  func.return %2 : tensor<5x2x3xf32>
}
// CHECK-LABEL: func.func @take(
// CHECK-NEXT:    %2 = relay.take %0, %1 {axis = 1} : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<5x2x3xf32>

func.func @gather(%0: tensor<5x4xf32>, %1: tensor<2x4xi64>) -> tensor<2x4xf32> {
  %2 = relay.gather %0, %1 : (tensor<5x4xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @gather(
// CHECK-NEXT:    %2 = relay.gather %0, %1 : (tensor<5x4xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>

func.func @gather_nd(%0: tensor<2x5x4xf32>, %1: tensor<2x3x1xi64>) -> tensor<2x3x4xf32> {
  %2 = relay.gather_nd %0, %1 {batch_dims = 1} : (tensor<2x5x4xf32>, tensor<2x3x1xi64>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @gather_nd(
// CHECK-NEXT:    %2 = relay.gather_nd %0, %1 {batch_dims = 1} : (tensor<2x5x4xf32>, tensor<2x3x1xi64>) -> tensor<2x3x4xf32>

func.func @scatter_elements(%0: tensor<5x4xf32>, %1: tensor<2x4xi64>, %2: tensor<2x4xf32>) -> tensor<5x4xf32> {
  %3 = relay.scatter_elements %0, %1, %2 {reduction = "add"} : (tensor<5x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<5x4xf32>
  func.return %3 : tensor<5x4xf32>
}
// CHECK-LABEL: func.func @scatter_elements(
// CHECK-NEXT:    %3 = relay.scatter_elements %0, %1, %2 {reduction = "add"} : (tensor<5x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<5x4xf32>

func.func @scatter_nd(%0: tensor<5x4xf32>, %1: tensor<3x1xi64>, %2: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %3 = relay.scatter_nd %0, %1, %2 : (tensor<5x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<5x4xf32>
  func.return %3 : tensor<5x4xf32>
}
// CHECK-LABEL: func.func @scatter_nd(
// CHECK-NEXT:    %3 = relay.scatter_nd %0, %1, %2 : (tensor<5x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<5x4xf32>

func.func @update_slice(%0: tensor<2x5x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2xi64>) -> tensor<2x5x4xf32> {
  %3 = relay.update_slice %0, %1, %2 : (tensor<2x5x4xf32>, tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>
  func.return %3 : tensor<2x5x4xf32>
}
// CHECK-LABEL: func.func @update_slice(
// CHECK-NEXT:    %3 = relay.update_slice %0, %1, %2 : (tensor<2x5x4xf32>, tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>

func.func @update_slice_of_a_ring(%0: tensor<2x5x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2xi64>) -> tensor<2x5x4xf32> {
  %3 = relay.update_slice %0, %1, %2 {is_circular = true} : (tensor<2x5x4xf32>, tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>
  func.return %3 : tensor<2x5x4xf32>
}
// CHECK-LABEL: func.func @update_slice_of_a_ring(
// CHECK-NEXT:    %3 = relay.update_slice %0, %1, %2 {is_circular = true} : (tensor<2x5x4xf32>, tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<2x5x4xf32>

func.func @cumsum(%0: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %1 = relay.cumsum %0 {axis = 1, exclusive = true} : (tensor<5x4xf32>) -> tensor<5x4xf32>
  func.return %1 : tensor<5x4xf32>
}
// CHECK-LABEL: func.func @cumsum(
// CHECK-NEXT:    %1 = relay.cumsum %0 {axis = 1, exclusive = true} : (tensor<5x4xf32>) -> tensor<5x4xf32>

func.func @cumprod(%0: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %1 = relay.cumprod %0 {reverse = true} : (tensor<5x4xf32>) -> tensor<5x4xf32>
  func.return %1 : tensor<5x4xf32>
}
// CHECK-LABEL: func.func @cumprod(
// CHECK-NEXT:    %1 = relay.cumprod %0 {reverse = true} : (tensor<5x4xf32>) -> tensor<5x4xf32>

func.func @topk(%0: tensor<5x4xf32>) -> (tensor<5x2xf32>, tensor<5x2xi64>) {
  %1, %2 = relay.topk %0 {k = 2, axis = 1, is_ascend = true} : (tensor<5x4xf32>) -> (tensor<5x2xf32>, tensor<5x2xi64>)
  func.return %1, %2 : tensor<5x2xf32>, tensor<5x2xi64>
}
// CHECK-LABEL: func.func @topk(
// CHECK-NEXT:    %1, %2 = relay.topk %0 {k = 2, axis = 1, is_ascend = true} : (tensor<5x4xf32>) -> (tensor<5x2xf32>, tensor<5x2xi64>)
