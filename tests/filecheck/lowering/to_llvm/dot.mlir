// RUN: env BYOC_MAX_ISA=avx2 byoc-opt %s --split-input-file --verify-diagnostics -p convert-to-llvm | filecheck %s

// Without the instruction, halves of words are multiplied in f32.
// CHECK-LABEL: @dot
func.func @dot(%s: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) -> vector<16xf32> {
  // CHECK: llvm.shl %{{.*}} : vector<16xi32>
  // CHECK: llvm.and %{{.*}} : vector<16xi32>
  // CHECK: %[[LOWER:.*]] = llvm.fmul %{{.*}} : vector<16xf32>
  // CHECK: %[[SUM:.*]] = llvm.fadd %s, %[[LOWER]]
  // CHECK: %[[UPPER:.*]] = llvm.fmul %{{.*}} : vector<16xf32>
  // CHECK: llvm.fadd %[[SUM]], %[[UPPER]]
  %0 = x86vector.avx512.dot %s, %a, %b : vector<32xbf16> -> vector<16xf32>
  func.return %0 : vector<16xf32>
}

// -----

func.func @too_few(%s: vector<16xf32>, %a: vector<16xbf16>) -> vector<16xf32> {
  // expected-error @below {{x86vector.avx512.dot: expected f32 and twice as many bf16, found vector<16xf32> and vector<16xbf16>}}
  %0 = x86vector.avx512.dot %s, %a, %a : vector<16xbf16> -> vector<16xf32>
  func.return %0 : vector<16xf32>
}
