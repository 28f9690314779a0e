func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0" = relay.nn.relu %x {strides = [1, 1], padding = [0, 0, 0, 0]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<4xf32>
}
