// RUN: byoc-opt --backend %backends %s -p 'merge-composite{targets=beta}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=beta}' | filecheck %s --check-prefix OUTLINED

// In a region that is drawn for one backend the patterns of others do not count.
// CHECK-LABEL: func.func @other
// CHECK-NOT: byoc.composite
// OUTLINED: func.func private @npu_other_0
// OUTLINED-NEXT: relay.sigmoid
// OUTLINED-NEXT: relay.multiply
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "npu" : tensor<4xf32>
  %1 = relay.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.multiply %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "npu" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// Its own do.
// CHECK-LABEL: func.func @own
// CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %x for "beta"
// CHECK-NEXT: byoc.composite "beta.swish" from "sigmoid_multiply_" (%{{.*}} = [[B]] : tensor<4xf32>)
// OUTLINED: func.func private @beta_own_0
// OUTLINED-NEXT: byoc.composite "beta.swish"
func.func @own(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "beta" : tensor<4xf32>
  %1 = relay.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.multiply %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "beta" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// No match crosses the border of a region.
// CHECK-LABEL: func.func @border
// CHECK-NOT: byoc.composite
func.func @border(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "beta" : tensor<4xf32>
  %1 = relay.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "beta" : tensor<4xf32>
  %3 = relay.multiply %2, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
