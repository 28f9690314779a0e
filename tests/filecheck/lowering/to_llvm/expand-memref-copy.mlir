// RUN: byoc-opt %s -p expand-memref-copy | filecheck %s

func.func @f(%a: memref<4x3xf32, strided<[8, 1]>>, %b: memref<4x3xf32>, %c: memref<4x3xf32>) {
  "memref.copy"(%a, %b) : (memref<4x3xf32, strided<[8, 1]>>, memref<4x3xf32>) -> ()
  "memref.copy"(%b, %c) : (memref<4x3xf32>, memref<4x3xf32>) -> ()
  func.return
}
// CHECK:      scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:   scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:     %[[X:.*]] = memref.load %a[%[[I]], %[[J]]] : memref<4x3xf32, strided<[8, 1]>>
// CHECK-NEXT:     memref.store %[[X]], %b[%[[I]], %[[J]]] : memref<4x3xf32>
// CHECK:      "memref.copy"(%b, %c)
