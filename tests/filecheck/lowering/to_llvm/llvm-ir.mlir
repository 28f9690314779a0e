// RUN: byoc-opt %s --split-input-file -t llvm-ir | filecheck %s

// Linkage, calling convention and function attributes.
llvm.func internal fastcc @callee(%x: i32) -> i32 attributes {no_inline, no_unwind, passthrough = ["cold", ["key", "value"]], target_cpu = "haswell"} {
  llvm.return %x : i32
}
llvm.func @caller(%x: i32) -> i32 {
  %0 = llvm.call fastcc @callee(%x) : (i32) -> i32
  llvm.return %0 : i32
}
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @varargs(%f: !llvm.ptr, %x: i32) -> i32 {
  %0 = llvm.call @printf(%f, %x) vararg(!llvm.func<i32 (!llvm.ptr, ...)>) : (!llvm.ptr, i32) -> i32
  llvm.return %0 : i32
}
// CHECK:      define internal fastcc i32 @callee(i32 %v0)
// CHECK-SAME: noinline
// CHECK-SAME: nounwind
// CHECK-SAME: cold "key"="value"
// CHECK-SAME: "target-cpu"="haswell"
// CHECK:      define external i32 @caller(i32 %v0) {
// CHECK:      call fastcc i32 @callee(i32 %v0)
// CHECK:      declare i32 @printf(ptr, ...)
// CHECK:      call i32 (ptr, ...) @printf(ptr %v0, i32 %v1)

// -----

// Attributes of arguments and results; those of other dialects are not LLVM's.
llvm.func hidden @attributes(%x: !llvm.ptr {llvm.noalias, llvm.readonly, llvm.align = 64 : i64, byoc.name = "x"}, %y: !llvm.ptr {llvm.writeonly, llvm.nocapture, llvm.dereferenceable = 16 : i64}) -> (i8 {llvm.zeroext, llvm.noundef}) {
  %0 = llvm.load %x : !llvm.ptr -> i8
  llvm.return %0 : i8
}
// CHECK:      define external hidden zeroext noundef i8 @attributes(
// CHECK-SAME: ptr noalias readonly align 64 %v0,
// CHECK-SAME: ptr writeonly captures(none) dereferenceable(16) %v1)

// -----

// Globals: alignment, section, thread-local, address significance, initialisers.
llvm.mlir.global internal constant @data(dense<[1, 2]> : tensor<2xi16>) {alignment = 64 : i64, section = "mine"} : !llvm.array<2 x i16>
llvm.mlir.global private thread_local unnamed_addr @counter(7 : i32) : i32
llvm.mlir.global external @outside() : !llvm.ptr
llvm.mlir.global internal @table() : !llvm.struct<(!llvm.ptr, i32)> {
  %0 = llvm.mlir.undef : !llvm.struct<(!llvm.ptr, i32)>
  %1 = llvm.mlir.addressof @data : !llvm.ptr
  %2 = llvm.insertvalue %1, %0[0] : !llvm.struct<(!llvm.ptr, i32)>
  %3 = llvm.mlir.constant(5 : i32) : i32
  %4 = llvm.insertvalue %3, %2[1] : !llvm.struct<(!llvm.ptr, i32)>
  llvm.return %4 : !llvm.struct<(!llvm.ptr, i32)>
}
// CHECK:      @data = internal constant [4 x i8] c"\01\00\02\00", section "mine", align 64
// CHECK-NEXT: @counter = private thread_local unnamed_addr global i32 7
// CHECK-NEXT: @outside = external global ptr
// CHECK-NEXT: @table = internal global { ptr, i32 } { ptr @data, i32 5 }

// -----

// Atomic orderings, volatility, alignment, non-temporal stores.
llvm.func @memory(%p: !llvm.ptr, %x: i32) -> i32 {
  %0 = llvm.load %p atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
  "llvm.store"(%x, %p) <{ordering = 5 : i64, alignment = 4 : i64}> : (i32, !llvm.ptr) -> ()
  llvm.store volatile %x, %p {alignment = 8 : i64} : i32, !llvm.ptr
  llvm.store %x, %p {nontemporal} : i32, !llvm.ptr
  %1 = "llvm.atomicrmw"(%p, %x) <{bin_op = 1 : i64, ordering = 2 : i64}> : (!llvm.ptr, i32) -> i32
  %2 = "llvm.atomicrmw"(%p, %x) <{bin_op = 0 : i64, ordering = 6 : i64}> : (!llvm.ptr, i32) -> i32
  llvm.return %0 : i32
}
// CHECK: load atomic i32, ptr %v0 acquire, align 4
// CHECK: store atomic i32 %v1, ptr %v0 release, align 4
// CHECK: store volatile i32 %v1, ptr %v0, align 8
// CHECK: store i32 %v1, ptr %v0, !nontemporal !0
// CHECK: atomicrmw add ptr %v0, i32 %v1 monotonic
// CHECK: atomicrmw xchg ptr %v0, i32 %v1 acq_rel
// CHECK: !0 = !{i32 1}

// -----

// Fast-math flags and type suffixes of intrinsics: several types in one module.
llvm.func @intrinsics(%x: f32, %y: f64, %v: vector<8xf32>, %i: i32) -> f32 {
  %0 = llvm.intr.exp(%x) {fastmathFlags = #llvm.fastmath<contract,nnan>} : (f32) -> f32
  %1 = llvm.intr.exp(%y) : (f64) -> f64
  %2 = llvm.intr.exp(%v) : (vector<8xf32>) -> vector<8xf32>
  %3 = llvm.intr.maximum(%0, %x) : (f32, f32) -> f32
  %4 = llvm.intr.fma(%3, %x, %x) {fastmathFlags = #llvm.fastmath<fast>} : (f32, f32, f32) -> f32
  %5 = llvm.fadd %4, %x {fastmathFlags = #llvm.fastmath<reassoc>} : f32
  %6 = "llvm.intr.vector.reduce.fadd"(%5, %v) <{fastmathFlags = #llvm.fastmath<reassoc>}> : (f32, vector<8xf32>) -> f32
  %7 = llvm.intr.ctlz(%i) {is_zero_poison = false} : (i32) -> i32
  %8 = llvm.fcmp "olt" %6, %x : f32
  %9 = llvm.select %8, %6, %x {fastmathFlags = #llvm.fastmath<nnan>} : i1, f32
  llvm.return %9 : f32
}
// CHECK: call contract nnan float @llvm.exp.f32(float %v0)
// CHECK: call double @llvm.exp.f64(double %v1)
// CHECK: call <8 x float> @llvm.exp.v8f32(<8 x float> %v2)
// CHECK: call float @llvm.maximum.f32(
// CHECK: call afn arcp contract ninf nnan nsz reassoc float @llvm.fma.f32(
// CHECK: fadd reassoc float
// CHECK: call reassoc float @llvm.vector.reduce.fadd.v8f32(
// CHECK: call i32 @llvm.ctlz.i32(i32 %v3, i1 false)
// CHECK: fcmp olt float
// CHECK: select nnan i1

// -----

// Two edges to one block with different arguments get a block in between; the same arguments do not.
llvm.func @edges(%c: i1, %a: i32, %b: i32) -> i32 {
  llvm.cond_br %c, ^join(%a : i32), ^join(%b : i32)
^join(%0: i32):
  llvm.cond_br %c, ^end(%0 : i32), ^end(%0 : i32)
^end(%1: i32):
  llvm.return %1 : i32
}
// CHECK:      br i1 %v0, label %b1, label %e0
// CHECK-NEXT: b1:
// CHECK-NEXT:   %[[JOIN:v[0-9]+]] = phi i32 [ %v1, %b0 ], [ %v2, %e0 ]
// CHECK-NEXT:   br i1 %v0, label %b2, label %b2
// CHECK-NEXT: b2:
// CHECK-NEXT:   phi i32 [ %[[JOIN]], %b1 ], [ %[[JOIN]], %b1 ]
// CHECK:      e0:
// CHECK-NEXT:   br label %b1

// -----

// Blocks in any order, and a switch.
llvm.func @order(%x: i32) -> i32 {
  llvm.br ^second
^third:
  "llvm.switch"(%1, %1, %1)[^last, ^other, ^last] <{case_values = dense<[3, -4]> : vector<2xi32>, case_operand_segments = array<i32: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (i32, i32, i32) -> ()
^second:
  %1 = llvm.add %x, %x overflow<nsw, nuw> : i32
  llvm.br ^third
^other:
  llvm.unreachable
^last(%2: i32):
  llvm.return %2 : i32
}
// CHECK:      b1:
// CHECK-NEXT:   switch i32 %[[SUM:v[0-9]+]], label %b4 [ i32 3, label %b3 i32 -4, label %b4 ]
// CHECK:      b2:
// CHECK-NEXT:   %[[SUM]] = add nuw nsw i32 %v0, %v0

// -----

// Constants: exact bits of floats, vectors, pointers, large offsets.
llvm.func @constants(%p: !llvm.ptr) -> vector<2xf32> {
  %0 = llvm.mlir.constant(0.1 : f32) : f32
  %1 = llvm.mlir.constant(dense<[0.5, -2.0]> : vector<2xf32>) : vector<2xf32>
  %2 = llvm.mlir.constant(1 : i64) : i64
  %3 = llvm.mlir.zero : !llvm.ptr
  %4 = llvm.getelementptr inbounds %p[%2, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, f32)>
  llvm.store %0, %4 : f32, !llvm.ptr
  llvm.store %3, %p : !llvm.ptr, !llvm.ptr
  llvm.return %1 : vector<2xf32>
}
// CHECK: getelementptr inbounds { i32, float }, ptr %v0, i64 1, i32 1
// CHECK: store float 0x3FB99999A0000000, ptr
// CHECK: store ptr null, ptr %v0
// CHECK: ret <2 x float> <float 0x3FE0000000000000, float 0xC000000000000000>
