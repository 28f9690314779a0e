// RUN: byoc-opt %s -p 'specialise-dims{batch=2 seq=6}' | filecheck %s

relay.symbol @batch {min = 1, hint = 4}
relay.symbol @seq {hint = 128}
relay.guard "<=" <[seq, 4*batch]>
// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @attention(%x: tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32> {
// CHECK-NEXT:     %0 = relay.reshape %x {newshape = [2, 6, 2, 4]} : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
// CHECK-NEXT:     func.return %0 : tensor<2x6x2x4xf32>
func.func @attention(%x: tensor<?x?x8xf32, #relay.shape<[batch, seq, 8]>>) -> tensor<?x?x2x4xf32, #relay.shape<[batch, seq, 2, 4]>> {
  %0 = relay.reshape %x {newshape = #relay.shape<[batch, seq, 2, 4]>} : (tensor<?x?x8xf32, #relay.shape<[batch, seq, 8]>>) -> tensor<?x?x2x4xf32, #relay.shape<[batch, seq, 2, 4]>>
  func.return %0 : tensor<?x?x2x4xf32, #relay.shape<[batch, seq, 2, 4]>>
}

// What follows from sizes alone is a constant, placed where it is used.
// CHECK-LABEL: func.func @positions
// CHECK-NEXT:     %0 = relay.abs %x
// CHECK-NEXT:     %places = relay.constant dense<[3, 4, 5, 6, 7, 8]> : tensor<6xi64>
// CHECK-NEXT:     %1 = relay.add %0, %places
// CHECK-NEXT:     func.return %1
func.func @positions(%x: tensor<?xi64, #relay.shape<[seq]>>) -> tensor<?xi64, #relay.shape<[seq]>> {
  %three = relay.constant dense<3> : tensor<i64>
  %range = relay.arange {span = #relay.shape<[0, seq, 1]>, dtype = i64} : () -> tensor<?xi64, #relay.shape<[seq]>>
  %places = relay.add %range, %three : (tensor<?xi64, #relay.shape<[seq]>>, tensor<i64>) -> tensor<?xi64, #relay.shape<[seq]>>
  %0 = relay.abs %x : (tensor<?xi64, #relay.shape<[seq]>>) -> tensor<?xi64, #relay.shape<[seq]>>
  %1 = relay.add %0, %places : (tensor<?xi64, #relay.shape<[seq]>>, tensor<?xi64, #relay.shape<[seq]>>) -> tensor<?xi64, #relay.shape<[seq]>>
  func.return %1 : tensor<?xi64, #relay.shape<[seq]>>
}

// CHECK-LABEL: func.func @largest
// CHECK-NEXT:     %values, %places = relay.topk %x {k = 5} : (tensor<6xf32>) -> (tensor<5xf32>, tensor<5xi64>)
func.func @largest(%x: tensor<?xf32, #relay.shape<[seq]>>) -> tensor<?xf32, #relay.shape<[min(seq, 5)]>> {
  %values, %places = relay.topk %x {k = #relay.size<min(seq, 5)>, axis = 0} : (tensor<?xf32, #relay.shape<[seq]>>) -> (tensor<?xf32, #relay.shape<[min(seq, 5)]>>, tensor<?xi64, #relay.shape<[min(seq, 5)]>>)
  func.return %values : tensor<?xf32, #relay.shape<[min(seq, 5)]>>
}

// CHECK-LABEL: func.func @sizes
// CHECK-NEXT:     %0 = relay.constant dense<[2.000000e+00, 1.200000e+01]> : tensor<2xf32>
// CHECK-NEXT:     func.return %0
func.func @sizes() -> tensor<2xf32> {
  %0 = relay.sizes {values = #relay.shape<[batch, batch*seq]>, newshape = [2], dtype = i64} : () -> tensor<2xi64>
  %1 = relay.cast %0 {dtype = f32} : (tensor<2xi64>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
