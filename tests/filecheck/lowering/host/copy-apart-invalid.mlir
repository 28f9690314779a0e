// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  // expected-error @below {{host.copy_apart: the number of elements is given if the type is dynamic, and only then; found memref<?x4xf32>}}
  host.copy_apart %x, %y : memref<?x4xf32>, memref<?x4xf32>
  func.return
}

// -----

func.func @main(%x: memref<2x4xf32>, %y: memref<2x4xf32>, %n: index) {
  // expected-error @below {{host.copy_apart: the number of elements is given if the type is dynamic, and only then; found memref<2x4xf32>}}
  host.copy_apart %x, %y of %n : memref<2x4xf32>, memref<2x4xf32>
  func.return
}
