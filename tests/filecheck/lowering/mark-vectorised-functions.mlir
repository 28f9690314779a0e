// RUN: byoc-opt %s --split-input-file -p lower-scf-to-cf,convert-to-llvm,mark-vectorised-functions | filecheck %s

// A loop of calls does no scalar work; a loop that stores scalars does.
func.func private @tile(%a: memref<?xf32>) attributes {no_inline} {
  %i = arith.constant 0 : index
  %x = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
  vector.store %x, %a[%i] : memref<?xf32>, vector<8xf32>
  func.return
}
func.func @product(%a: memref<?xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    func.call @tile(%a) : (memref<?xf32>) -> ()
  }
  func.return
}
func.func @fill(%a: memref<?xf32>, %n: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    memref.store %x, %a[%i] : memref<?xf32>
  }
  func.return
}
// A scalar outside of all loops is computed once.
func.func @once(%a: memref<?xf32>, %x: f32) {
  %zero = arith.constant 0 : index
  memref.store %x, %a[%zero] : memref<?xf32>
  func.return
}
// CHECK:     llvm.func internal @tile({{.*}}) attributes {no_inline, byoc.vectorised} {
// CHECK:     llvm.func @product({{.*}}) attributes {byoc.vectorised} {
// CHECK:     llvm.func @fill({{[^)]*}}) {
// CHECK:     llvm.func @once({{.*}}) attributes {byoc.vectorised} {

// -----

// LLVM combines what computes vectors of short integers.
func.func @bytes(%a: memref<?xi8>, %n: index) {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  scf.for %i = %zero to %n step %eight {
    %x = vector.load %a[%i] : memref<?xi8>, vector<8xi8>
    %y = arith.addi %x, %x : vector<8xi8>
    vector.store %y, %a[%i] : memref<?xi8>, vector<8xi8>
  }
  func.return
}
func.func @words(%a: memref<?xi32>, %n: index) {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  scf.for %i = %zero to %n step %eight {
    %x = vector.load %a[%i] : memref<?xi32>, vector<8xi32>
    %y = arith.addi %x, %x : vector<8xi32>
    vector.store %y, %a[%i] : memref<?xi32>, vector<8xi32>
  }
  func.return
}
// CHECK:     llvm.func @bytes({{[^)]*}}) {
// CHECK:     llvm.func @words({{.*}}) attributes {byoc.vectorised} {

// -----

// LLVM inlines a short function into the loop that calls it.
func.func private @short(%a: memref<?xf32>) {
  %i = arith.constant 0 : index
  %x = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
  vector.store %x, %a[%i] : memref<?xf32>, vector<8xf32>
  func.return
}
func.func @loop(%a: memref<?xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    func.call @short(%a) : (memref<?xf32>) -> ()
  }
  func.return
}
// CHECK:     llvm.func internal @short({{[^)]*}}) {
// CHECK:     llvm.func @loop({{[^)]*}}) {

// -----

// A value on the stack becomes a register, but an array that is passed on stays there.
llvm.func @use(!llvm.ptr)
llvm.func @kept(%x: i64) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %a = llvm.alloca %one x i64 : (i64) -> !llvm.ptr
  llvm.store %x, %a : i64, !llvm.ptr
  %y = llvm.load %a : !llvm.ptr -> i64
  llvm.return %y : i64
}
llvm.func @passed() {
  %two = llvm.mlir.constant(2 : i64) : i64
  %a = llvm.alloca %two x i64 : (i64) -> !llvm.ptr
  llvm.call @use(%a) : (!llvm.ptr) -> ()
  llvm.return
}
// CHECK:     llvm.func @kept(%x: i64) -> i64 {
// CHECK:     llvm.func @passed() attributes {byoc.vectorised} {
