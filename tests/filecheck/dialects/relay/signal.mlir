// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @fft(%0: tensor<3x8x2xf32>) -> tensor<3x8x2xf32> {
  %1 = relay.fft %0 : (tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
  %2 = relay.fft %1 {inverse = true} : (tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
  func.return %2 : tensor<3x8x2xf32>
}
// CHECK-LABEL: func.func @fft(
// CHECK-NEXT:    %1 = relay.fft %0 : (tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
// CHECK-NEXT:    %2 = relay.fft %1 {inverse = true} : (tensor<3x8x2xf32>) -> tensor<3x8x2xf32>

func.func @real(%0: tensor<3x8x1xf32>) -> tensor<3x8x1xf32> {
  %1 = relay.fft %0 {real = true} : (tensor<3x8x1xf32>) -> tensor<3x5x2xf32>
  %2 = relay.fft %1 {inverse = true, real = true} : (tensor<3x5x2xf32>) -> tensor<3x8x1xf32>
  func.return %2 : tensor<3x8x1xf32>
}
// CHECK-LABEL: func.func @real(
// CHECK-NEXT:    %1 = relay.fft %0 {real = true} : (tensor<3x8x1xf32>) -> tensor<3x5x2xf32>
// CHECK-NEXT:    %2 = relay.fft %1 {inverse = true, real = true} : (tensor<3x5x2xf32>) -> tensor<3x8x1xf32>
