// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @wrong_buffer(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{host.kernel 'half': the body's arguments are (memref<8xf32>, memref<8xf32>), but the inputs and outputs are (memref<8xf32>, memref<4xf32>)}}
  %r = host.kernel "half" %x : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>):
    host.yield
  }
  func.return %r : tensor<4xf32>
}

// -----

func.func @no_yield(%x: tensor<8xf32>) {
  host.kernel "nothing" %x : (tensor<8xf32>) -> () {
  ^bb0(%a: memref<8xf32>):
    // expected-error @below {{terminates block in single-block region but is not a terminator}}
    %c0 = arith.constant 0 : index
  }
  func.return
}
