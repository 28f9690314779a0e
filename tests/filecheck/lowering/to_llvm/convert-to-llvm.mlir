// RUN: byoc-opt %s --split-input-file -p convert-to-llvm | filecheck %s

func.func @loads(%x: memref<4x8xf32>, %m: memref<4x8xi1>, %u: memref<4xui8>, %i: index) -> f32 {
  %c2 = arith.constant 2 : index
  %0 = memref.load %x[%c2, %i] : memref<4x8xf32>
  %1 = memref.load %m[%i, %c2] : memref<4x8xi1>
  %2 = memref.load %u[%c2] : memref<4xui8>
  memref.store %2, %u[%i] : memref<4xui8>
  memref.store %1, %m[%c2, %c2] : memref<4x8xi1>
  func.return %0 : f32
}
// CHECK:      llvm.func @loads(%x: !llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef},
// CHECK-SAME: %i: i64) -> f32 {
// CHECK:      %[[OFFSET:.*]] = llvm.mlir.constant(16) : i64
// CHECK-NEXT: %[[INDEX:.*]] = llvm.add %i, %[[OFFSET]] overflow<nsw> : i64
// CHECK-NEXT: %[[ADDRESS:.*]] = llvm.getelementptr inbounds %x[%[[INDEX]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: llvm.load %[[ADDRESS]] : !llvm.ptr -> f32
// CHECK:      %[[BYTE:.*]] = llvm.load {{.*}} : !llvm.ptr -> i8
// CHECK-NEXT: %[[ZERO:.*]] = llvm.mlir.constant(0 : i8) : i8
// CHECK-NEXT: %[[BOOL:.*]] = llvm.icmp "ne" %[[BYTE]], %[[ZERO]] : i8
// CHECK:      llvm.getelementptr inbounds %u[2] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK:      llvm.getelementptr inbounds %m[18] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-NEXT: %[[WIDE:.*]] = llvm.zext %[[BOOL]] : i1 to i8
// CHECK-NEXT: llvm.store %[[WIDE]]

// -----

func.func private @callee(index, memref<4xf32>) -> i32
func.func private @helper(%x: memref<4xf32> {byoc.may_alias}) {
  func.return
}
func.func @main(%x: memref<4xf32>, %i: index) -> i32 attributes {byoc.entry} {
  %0 = func.call @callee(%i, %x) : (index, memref<4xf32>) -> i32
  func.call @helper(%x) : (memref<4xf32>) -> ()
  func.return %0 : i32
}
// CHECK:      llvm.func @callee(i64, !llvm.ptr) -> i32
// CHECK-NEXT: llvm.func internal @helper(%x: !llvm.ptr {llvm.nonnull, llvm.noundef}) {
// CHECK:      llvm.func @main({{.*}}) -> i32 attributes {byoc.entry} {
// CHECK-NEXT: llvm.call @callee(%{{.*}}, %{{.*}}) : (i64, !llvm.ptr) -> i32

// -----

func.func @math(%x: f32, %b: bf16) -> f32 {
  %0 = arith.mulf %x, %x fastmath<contract> : f32
  %1 = math.erf %0 : f32
  %2 = math.sqrt %1 fastmath<nnan> : f32
  %3 = arith.extf %b : bf16 to f32
  %4 = arith.addf %2, %3 : f32
  func.return %4 : f32
}
// CHECK:      llvm.func @math(%x: f32, %b: i16) -> f32 {
// CHECK-NEXT: %[[SQUARE:.*]] = llvm.fmul %x, %x {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT: %[[ERF:.*]] = llvm.call @erff(%[[SQUARE]]) : (f32) -> f32
// CHECK-NEXT: llvm.intr.sqrt(%[[ERF]]) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> f32
// CHECK-NEXT: %[[WIDE:.*]] = llvm.zext %b : i16 to i32
// CHECK-NEXT: %[[SIXTEEN:.*]] = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT: %[[BITS:.*]] = llvm.shl %[[WIDE]], %[[SIXTEEN]] : i32
// CHECK-NEXT: llvm.bitcast %[[BITS]] : i32 to f32
// CHECK:      llvm.func @erff(f32) -> f32

// -----

// A function in the llvm dialect may still hold ops of the source dialects.
llvm.func @mixed(%p: !llvm.ptr, %n: i64) {
  %x = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<8xf32>
  %i = builtin.unrealized_conversion_cast %n : i64 to index
  %0 = memref.load %x[%i] : memref<8xf32>
  memref.store %0, %x[%i] : memref<8xf32>
  llvm.return
}
// CHECK:      llvm.func @mixed(%p: !llvm.ptr, %n: i64) {
// CHECK-NEXT: llvm.getelementptr inbounds %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: llvm.load
// CHECK-NOT:  unrealized_conversion_cast

// -----

func.func @prefetch(%b: memref<?xf32>, %i: index) {
  host.prefetch %b[%i] : memref<?xf32>
  func.return
}
// CHECK:      llvm.func @prefetch
// CHECK:      %[[LINE:.*]] = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.prefetch.p0"(%[[LINE]], %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i32, i32, i32) -> ()

// -----

func.func @matrices(%d: memref<?xi8>, %i: index, %c: memref<2048xi8>, %s: memref<512xi32>) {
  host.request_matrices
  host.multiply_matrices %d[%i], %c[%i], %s[%i] {steps = 32 : i64, vectors = 2 : i64}
    : memref<?xi8>, memref<2048xi8>, memref<512xi32>
  func.return
}
// CHECK:      llvm.func @matrices
// CHECK:      llvm.call @syscall(%{{.*}}, %{{.*}}, %{{.*}}) : (i64, i64, i64) -> i64
// CHECK:      %[[DATA:.*]] = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK-SAME: (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
// CHECK:      %[[CODES:.*]] = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK:      llvm.call_intrinsic "llvm.x86.tdpbsud.internal"({{.*}}, %[[DATA]], %[[CODES]])
// CHECK:      llvm.call_intrinsic "llvm.x86.tdpbsud.internal"({{.*}}, %[[DATA]], %{{.*}})
// CHECK:      llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK:      llvm.call_intrinsic "llvm.x86.tilestored64.internal"

// -----

// The sign of an f16 is a bit: it is not converted.
func.func @signs(%x: f16) -> f16 {
  %0 = math.absf %x : f16
  %1 = arith.negf %0 : f16
  func.return %1 : f16
}
// CHECK:      llvm.func @signs(%x: f16) -> f16 {
// CHECK-NEXT: llvm.intr.fabs(%x)
// CHECK-NEXT: llvm.fneg
