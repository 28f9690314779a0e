// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha,beta}' | filecheck %s

// AT-12: every mark counts, not only that of the first operand: the region stays as it was drawn.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<2.0> : tensor<f32>
  // CHECK: [[B:%.*]] = byoc.compiler_begin %x for "npu"
  // CHECK-NEXT: [[R:%.*]] = relay.add %c, [[B]]
  // CHECK-NEXT: [[S:%.*]] = relay.nn.relu [[R]]
  // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end [[S]] for "npu"
  %0 = byoc.compiler_begin %x for "npu" : tensor<4xf32>
  %1 = relay.add %c, %0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "npu" : tensor<4xf32>
  // CHECK-NEXT: byoc.compiler_begin [[E]] for "alpha"
  %4 = relay.nn.relu %3 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
