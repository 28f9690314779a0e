// RUN: byoc-opt %s | byoc-opt | filecheck %s

// Symbolic sizes: in types, in properties, and what the module states of them.

relay.symbol @batch {hint = 4, expected = 1}
relay.symbol @seq {min = 1, max = 512, hint = 128}
relay.symbol @"past + 1" {max = 1, hint = 1}
relay.guard "<=" <[seq, 4*batch]>
// CHECK: relay.symbol @batch {min = 0, hint = 4, expected = 1}
// CHECK-NEXT: relay.symbol @seq {min = 1, max = 512, hint = 128}
// CHECK-NEXT: relay.symbol @"past + 1" {min = 0, max = 1, hint = 1}
// CHECK-NEXT: relay.guard "<=" <[seq, 4*batch]>

// CHECK: func.func @encoder(%x: tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>
func.func @encoder(%x: tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>, %w: tensor<10x384xf32>) {
  %0 = relay.nn.dense %x, %w : (tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>, tensor<10x384xf32>) -> tensor<?x?x10xf32, #relay.shape<[batch, seq, 10]>>
  // CHECK: relay.reshape {{.*}} {newshape = #relay.shape<[batch*seq, 10]>}
  %1 = relay.reshape %0 {newshape = #relay.shape<[seq * batch, 10]>} : (tensor<?x?x10xf32, #relay.shape<[batch, seq, 10]>>) -> tensor<?x10xf32, #relay.shape<[batch*seq, 10]>>
  // CHECK: relay.reshape {{.*}} {newshape = [-1, 5]} : {{.*}} -> tensor<?x5xf32, #relay.shape<[2*batch*seq, 5]>>
  %2 = relay.reshape %0 {newshape = [-1, 5]} : (tensor<?x?x10xf32, #relay.shape<[batch, seq, 10]>>) -> tensor<?x5xf32, #relay.shape<[2 * batch * seq, 5]>>
  // CHECK: #relay.shape<[batch, floordiv(seq, 2) + 1, 384]>
  %3 = relay.strided_slice %x {begin = [0, 0, 0], end = #relay.shape<[batch, 1 + floordiv(seq, 2), 384]>, strides = [1, 1, 1]} : (tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>) -> tensor<?x?x384xf32, #relay.shape<[batch, floordiv(2 + seq, 2), 384]>>
  // CHECK: relay.topk {{.*}} {k = #relay.size<min(seq, 5)>, axis = 1}
  %4, %5 = relay.topk %x {k = #relay.size<min(5, seq)>, axis = 1} : (tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>) -> (tensor<?x?x384xf32, #relay.shape<[batch, min(seq, 5), 384]>>, tensor<?x?x384xi64, #relay.shape<[batch, min(seq, 5), 384]>>)
  func.return
}
relay.guard "<=" <[1 + floordiv(seq, 2), seq]>

// CHECK: func.func @image
func.func @image(%x: tensor<?x3x?x?xf32, #relay.shape<[batch, 3, "past + 1", seq]>>, %w: tensor<8x3x3x3xf32>) {
  // CHECK: -> tensor<?x8x?x?xf32, #relay.shape<[batch, 8, floordiv("past + 1" + 1, 2), floordiv(seq + 1, 2)]>>
  %0 = relay.nn.conv2d %x, %w {strides = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<?x3x?x?xf32, #relay.shape<[batch, 3, "past + 1", seq]>>, tensor<8x3x3x3xf32>) -> tensor<?x8x?x?xf32, #relay.shape<[batch, 8, floordiv("past + 1" + 1, 2), ceildiv(seq, 2)]>>
  func.return
}
relay.guard "<=" <[1, floordiv("past + 1" + 1, 2)]>
