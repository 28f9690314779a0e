builtin.module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = relay.multiply %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = relay.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}
