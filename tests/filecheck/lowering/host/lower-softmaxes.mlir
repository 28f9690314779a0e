// RUN: byoc-opt %s --split-input-file -p 'lower-softmaxes{threads=2}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'lower-softmaxes{threads=1}' | filecheck %s --check-prefix ALONE

// All rows at once, where the scores are.
func.func @last_axis(%x: tensor<3x20x197xf32>) -> tensor<3x20x197xf32> {
  %0 = relay.nn.softmax %x {axis = -1} : (tensor<3x20x197xf32>) -> tensor<3x20x197xf32>
  func.return %0 : tensor<3x20x197xf32>
}
// CHECK-LABEL: func.func @last_axis
// CHECK-SAME:  (%[[X:.*]]: tensor<3x20x197xf32>)
// CHECK:       %[[NUMBERS:.*]] = relay.constant dense<[60, 197, {{[0-9]+}}]> : tensor<3xi64>
// CHECK:       %[[Y:.*]] = host.kernel "softmax" in_place %[[X]], %[[NUMBERS]]
// CHECK:       llvm.call @[[CALL:byoc_softmax_[0-9]+_of_buffers]](
// CHECK:       func.return %[[Y]]
// CHECK:       llvm.call @byoc_parallel_for
// CHECK:       llvm.func internal @[[CALL]](
// ALONE-NOT:   byoc_parallel_for

// -----

// Loops are as fast for short rows; other axes, other types and logarithms have no kernel.
func.func @others(%x: tensor<64x7xf32>, %y: tensor<64x64xf32>, %z: tensor<64x64xf64>) -> (tensor<64x7xf32>, tensor<64x64xf32>, tensor<64x64xf64>, tensor<64x64xf32>) {
  %0 = relay.nn.softmax %x {axis = 1} : (tensor<64x7xf32>) -> tensor<64x7xf32>
  %1 = relay.nn.softmax %y {axis = 0} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = relay.nn.softmax %z {axis = 1} : (tensor<64x64xf64>) -> tensor<64x64xf64>
  %3 = relay.nn.log_softmax %y {axis = 1} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1, %2, %3 : tensor<64x7xf32>, tensor<64x64xf32>, tensor<64x64xf64>, tensor<64x64xf32>
}
// CHECK-LABEL: func.func @others
// CHECK-NOT:   host.kernel
// ALONE-LABEL: func.func @others

// -----

// Sizes that calls choose are words of the call.
relay.symbol @n {min = 1, hint = 128}
func.func @sized(%x: tensor<4x?xf32, #relay.shape<[4, n]>>) -> tensor<4x?xf32, #relay.shape<[4, n]>> {
  %0 = relay.nn.softmax %x {axis = -1} : (tensor<4x?xf32, #relay.shape<[4, n]>>) -> tensor<4x?xf32, #relay.shape<[4, n]>>
  func.return %0 : tensor<4x?xf32, #relay.shape<[4, n]>>
}
// CHECK-LABEL: func.func @sized
// CHECK:       relay.constant dense<[4, 0, {{[0-9]+}}]> : tensor<3xi64>
// CHECK:       host.kernel "softmax" in_place
// CHECK:       host.size <[n]> : index
// CHECK:       memref.store
// CHECK:       llvm.call @byoc_softmax_
// ALONE-LABEL: func.func @sized
