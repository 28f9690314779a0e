// RUN: byoc-opt %s | byoc-opt - | filecheck %s
// RUN: byoc-opt %s --print-op-generic | byoc-opt - | filecheck %s
// RUN: byoc-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

// CHECK-LABEL: llvm.func @f
// CHECK:         llvm.icmp "eq" %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK-NEXT:    llvm.add %{{.*}}, %{{.*}} overflow<nsw> : i64
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[1] : (!llvm.ptr) -> !llvm.ptr, f32
// GENERIC:     overflowFlags = #llvm.overflow<nsw>
// GENERIC-NOT: noWrapFlags
llvm.func @f(%a: !llvm.ptr, %b: !llvm.ptr, %n: i64) -> i1 {
  %0 = llvm.icmp "eq" %a, %b : !llvm.ptr
  %1 = llvm.add %n, %n overflow<nsw> : i64
  %2 = "llvm.getelementptr"(%a) <{elem_type = f32, rawConstantIndices = array<i32: 1>}> : (!llvm.ptr) -> !llvm.ptr
  llvm.return %0 : i1
}

// CHECK: -> (tensor<4xf32>, tensor<4xf32>)
func.func @two(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r, %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    linalg.yield %a, %a : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  func.return %s : tensor<4xf32>
}
