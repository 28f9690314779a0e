// RUN: byoc-opt %s -p bind-sizes | filecheck %s

// Of sizes that differ by a number one is an argument.
relay.symbol @n {min = 0, hint = 8}
func.func @main(%arena: memref<?xi8>, %x: memref<8xf32>) {
  func.call @copy_0(%x) : (memref<8xf32>) -> ()
  func.return
}
func.func private @copy_0(%x: memref<8xf32>) attributes {byoc.kernel = "copy_0"} {
  %0 = host.size <[2*n]> : index
  %1 = host.size <[2*n + 1]> : index
  %2 = memref.load %x[%0] : memref<8xf32>
  memref.store %2, %x[%1] : memref<8xf32>
  func.return
}
// CHECK-LABEL: func.func @main(%arena: memref<?xi8>, %sizes: memref<1xi64>, %x: memref<8xf32>)
// CHECK:       %[[SIZE:.*]] = arith.muli
// CHECK:       func.call @copy_0(%x, %[[SIZE]]) : (memref<8xf32>, index) -> ()
// CHECK:       func.func private @copy_0(%x: memref<8xf32>, %[[N:.*]]: index)
// CHECK-NEXT:  %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:  %[[NEXT:.*]] = arith.addi %[[N]], %[[ONE]] overflow<nsw> : index
// CHECK-NEXT:  memref.load %x[%[[N]]]
// CHECK-NEXT:  memref.store %{{.*}}, %x[%[[NEXT]]]
