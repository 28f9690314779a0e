// RUN: byoc-opt %s -p 'bufferize,outline-kernels' | filecheck %s

// A kernel gets the memory of its inputs and outputs; equal bodies become one function, and a view
// of an input is taken inside, so that each buffer is one argument.

func.func @main(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %s = arith.constant dense<8> : tensor<1xi64>
  %v = tensor.reshape %x(%s) : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<8xf32>
  %w = tensor.reshape %y(%s) : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<8xf32>
  %r = host.kernel "reverse" %v : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %j = arith.subi %c7, %i : index
      %e = memref.load %a[%i] : memref<8xf32>
      memref.store %e, %b[%j] : memref<8xf32>
    }
    host.yield
  }
  %t = host.kernel "reverse" %w : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %j = arith.subi %c7, %i : index
      %e = memref.load %a[%i] : memref<8xf32>
      memref.store %e, %b[%j] : memref<8xf32>
    }
    host.yield
  }
  func.return %r, %t : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %x: memref<2x4xf32>, %y: memref<2x4xf32>, %out: memref<8xf32>, %out_1: memref<8xf32>)
// CHECK-NEXT: func.call @reverse_0(%x, %out) : (memref<2x4xf32>, memref<8xf32>) -> ()
// CHECK-NEXT: func.call @reverse_0(%y, %out_1) : (memref<2x4xf32>, memref<8xf32>) -> ()
// CHECK-NEXT: func.return
// CHECK: func.func private @reverse_0(%0: memref<2x4xf32>, %1: memref<8xf32>)
// CHECK-SAME: byoc.kernel = "reverse_0"
// CHECK-NEXT: %2 = memref.reinterpret_cast %0 to offset: [0], sizes: [8], strides: [1]
// CHECK: scf.for
// CHECK: memref.store %e, %1[%j] : memref<8xf32>
// CHECK-NOT: func.func
