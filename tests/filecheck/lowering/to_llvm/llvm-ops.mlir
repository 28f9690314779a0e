// RUN: byoc-opt %s | byoc-opt | filecheck %s
// RUN: byoc-opt %s --print-op-generic | byoc-opt | filecheck %s

llvm.func @ops(%x: f32, %y: f64, %i: i32, %v: vector<4xf32>, %w: vector<4xi32>, %p: !llvm.ptr, %n: i64, %b: i8) {
  %0 = llvm.fptosi %x : f32 to i32
  %1 = llvm.fptoui %x : f32 to i32
  %2 = llvm.uitofp %i : i32 to f32
  %3 = llvm.mlir.poison : vector<4xf32>
  %4 = llvm.freeze %3 : vector<4xf32>
  %5 = llvm.extractelement %v[%i : i32] : vector<4xf32>
  %6 = llvm.intr.roundeven(%y) : (f64) -> f64
  %7 = llvm.intr.maximum(%v, %v) {fastmathFlags = #llvm.fastmath<nnan>} : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %8 = llvm.intr.smax(%w, %w) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %9 = llvm.intr.vector.reduce.umin(%w) : (vector<4xi32>) -> i32
  %10 = llvm.intr.vector.reduce.fmaximum(%v) : (vector<4xf32>) -> f32
  "llvm.intr.memcpy"(%p, %p, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  "llvm.intr.memset"(%p, %b, %n) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  %11 = "llvm.atomicrmw"(%p, %n) <{bin_op = 1 : i64, ordering = 2 : i64}> : (!llvm.ptr, i64) -> i64
  llvm.return
}
// CHECK:      llvm.fptosi %x : f32 to i32
// CHECK-NEXT: llvm.fptoui %x : f32 to i32
// CHECK-NEXT: llvm.uitofp %i : i32 to f32
// CHECK-NEXT: llvm.mlir.poison : vector<4xf32>
// CHECK-NEXT: llvm.freeze %{{.*}} : vector<4xf32>
// CHECK-NEXT: llvm.extractelement %v[%i : i32] : vector<4xf32>
// CHECK-NEXT: llvm.intr.roundeven(%y) : (f64) -> f64
// CHECK-NEXT: llvm.intr.maximum(%v, %v) {fastmathFlags = #llvm.fastmath<nnan>}
// CHECK-NEXT: llvm.intr.smax(%w, %w)
// CHECK-NEXT: llvm.intr.vector.reduce.umin(%w)
// CHECK-NEXT: llvm.intr.vector.reduce.fmaximum(%v)
// CHECK-NEXT: "llvm.intr.memcpy"(%p, %p, %n) <{isVolatile = false}>
// CHECK-NEXT: "llvm.intr.memset"(%p, %b, %n) <{isVolatile = false}>
// CHECK-NEXT: "llvm.atomicrmw"(%p, %n) <{bin_op = 1 : i64, ordering = 2 : i64}> : (!llvm.ptr, i64) -> i64
