// RUN: byoc-opt %s -p bufferize --split-input-file --verify-diagnostics

// A constant of upstream has no memory: convert-tensors-to-relay makes it relay.constant.
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{arith.constant at loc(unknown) cannot be bufferized}}
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %c : tensor<2xf32>
}

// -----

func.func @of_lower_rank(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{tensor.extract_slice at loc(unknown) changes the rank from tensor<4x8xf32> to tensor<8xf32>}}
  %0 = tensor.extract_slice %x[1, 0][1, 8][1, 1] : tensor<4x8xf32> to tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
