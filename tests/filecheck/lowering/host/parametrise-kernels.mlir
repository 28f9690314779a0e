// RUN: byoc-opt %s --split-input-file -p parametrise-kernels | filecheck %s

// The end of each outermost loop becomes an argument, and its caller passes the constant.
func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  func.call @twice(%x, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  func.return
}
func.func private @twice(%x: memref<4x8xf32>, %y: memref<4x8xf32>) attributes {byoc.kernel = "twice"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<4x8xf32>
      memref.store %0, %y[%i, %j] : memref<4x8xf32>
    }
  }
  "scf.parallel"(%c0, %c0, %c4, %c8, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    %0 = memref.load %x[%i, %j] : memref<4x8xf32>
    memref.store %0, %y[%i, %j] : memref<4x8xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index, index, index, index) -> ()
  func.return
}
// CHECK:      func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
// CHECK-NEXT:   %0 = arith.constant 4 : index
// CHECK-NEXT:   %1 = arith.constant 4 : index
// CHECK-NEXT:   func.call @twice(%x, %y, %0, %1) : (memref<4x8xf32>, memref<4x8xf32>, index, index) -> ()
// CHECK:      func.func private @twice(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %end: index, %end_1: index)
// CHECK-NOT:    arith.constant 4
// CHECK:        scf.for %i = %c0 to %end step %c1 {
// CHECK-NEXT:     scf.for %j = %c0 to %c8 step %c1 {
// CHECK:        "scf.parallel"(%c0, %c0, %end_1, %c8, %c1, %c1)

// -----

// A constant with other uses stays for them; a function that is no kernel is left alone.
func.func @main(%x: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    memref.store %i, %x[%i] : memref<8xindex>
  }
  func.call @fill(%x) : (memref<8xindex>) -> ()
  func.return
}
func.func private @fill(%x: memref<8xindex>) attributes {byoc.kernel = "fill"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %c8, %x[%i] : memref<8xindex>
  }
  func.return
}
// CHECK:      func.func @main(%x: memref<8xindex>) {
// CHECK:        scf.for %i = %c0 to %c1 step %c1 {
// CHECK:      func.func private @fill(%x: memref<8xindex>, %end: index)
// CHECK:        %c8 = arith.constant 8 : index
// CHECK-NEXT:   scf.for %i = %c0 to %end step %c1 {
// CHECK-NEXT:     memref.store %c8, %x[%i] : memref<8xindex>
