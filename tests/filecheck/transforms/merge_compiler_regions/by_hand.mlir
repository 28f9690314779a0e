// RUN: byoc-opt %s -p 'merge-compiler-regions' | filecheck %s

// Regions of several ops, drawn by hand, merge as others do. A value passed straight through, and
// a begin nobody uses, are nothing.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %x for "npu"
  // CHECK-NEXT: [[R:%.*]] = relay.nn.relu [[B]]
  // CHECK-NEXT: [[T:%.*]] = relay.tanh [[R]]
  // CHECK-NEXT: [[A:%.*]] = relay.add [[T]], [[B]]
  // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end [[A]] for "npu"
  // CHECK-NEXT: func.return [[E]], %x
  %0 = byoc.compiler_begin %x for "npu" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "npu" : tensor<4xf32>
  %4 = byoc.compiler_begin %3 for "npu" : tensor<4xf32>
  %5 = byoc.compiler_begin %x for "npu" : tensor<4xf32>
  %6 = relay.add %4, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = byoc.compiler_end %6 for "npu" : tensor<4xf32>
  %8 = byoc.compiler_end %5 for "npu" : tensor<4xf32>
  %9 = byoc.compiler_begin %x for "other" : tensor<4xf32>
  func.return %7, %8 : tensor<4xf32>, tensor<4xf32>
}
