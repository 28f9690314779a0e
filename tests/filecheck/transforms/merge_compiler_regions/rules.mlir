// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha,beta},merge-compiler-regions' | filecheck %s

// MR-1, MR-5: a producer and its consumer merge, and so do regions that share an input (TVM never
// merges those). What is used in- and outside keeps its end for the outside.
// CHECK-LABEL: func.func @merge
func.func @merge(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %x for "alpha"
  // CHECK-NEXT: [[R:%.*]] = relay.nn.relu [[B]]
  // CHECK-NEXT: [[RE:%.*]] = byoc.compiler_end [[R]]
  // CHECK-NEXT: [[T:%.*]] = relay.tanh [[R]]
  // CHECK-NEXT: [[TE:%.*]] = byoc.compiler_end [[T]]
  // CHECK-NEXT: [[S:%.*]] = relay.tanh [[B]]
  // CHECK-NEXT: [[SE:%.*]] = byoc.compiler_end [[S]]
  // CHECK-NEXT: func.return [[RE]], [[TE]], [[SE]]
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Sharing a constant does not make neighbours.
// CHECK-LABEL: func.func @constant
func.func @constant(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: byoc.compiler_begin %x for "alpha"
  // CHECK: byoc.compiler_end
  // CHECK: byoc.compiler_begin %y for "alpha"
  // CHECK: byoc.compiler_end
  %c = relay.constant dense<2.0> : tensor<f32>
  %0 = relay.add %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = relay.add %y, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// MR-3, MR-6: what something else lies between stays apart: relu | exp | add.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[E:%.*]] = byoc.compiler_end
  // CHECK-NEXT: [[X:%.*]] = relay.exp [[E]]
  // CHECK-NEXT: byoc.compiler_begin [[X]] for "alpha"
  // CHECK-NEXT: byoc.compiler_begin [[E]] for "alpha"
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.add %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// MR-6: the diamond O -> {O, X} -> O: one region takes both ends of the free branch.
// CHECK-LABEL: func.func @diamond
func.func @diamond(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %x
  // CHECK-NEXT: [[R:%.*]] = relay.nn.relu [[B]]
  // CHECK-NEXT: [[RE:%.*]] = byoc.compiler_end [[R]]
  // CHECK-NEXT: [[T:%.*]] = relay.tanh [[R]]
  // CHECK-NEXT: [[TE:%.*]] = byoc.compiler_end [[T]]
  // CHECK-NEXT: [[X:%.*]] = relay.exp [[RE]]
  // CHECK-NEXT: [[TB:%.*]] = byoc.compiler_begin [[TE]]
  // CHECK-NEXT: [[XB:%.*]] = byoc.compiler_begin [[X]]
  // CHECK-NEXT: relay.add [[TB]], [[XB]]
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.add %1, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// MR-4: a dependency through the regions of an op counts: the if uses %0, and feeds the add.
// CHECK-LABEL: func.func @through_if
func.func @through_if(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[E:%.*]] = byoc.compiler_end
  // CHECK-NEXT: [[I:%.*]] = scf.if
  // CHECK: byoc.compiler_begin [[E]] for "alpha"
  // CHECK-NEXT: byoc.compiler_begin [[I]] for "alpha"
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %2 = relay.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// MR-7 (TVM merges this and recurses for ever): nothing is looked past, whatever op it is.
// CHECK-LABEL: func.func @through_concatenate
func.func @through_concatenate(%x: tensor<4xf32>) -> tensor<8xf32> {
  // CHECK: [[E:%.*]] = byoc.compiler_end
  // CHECK: relay.reshape
  // CHECK: byoc.compiler_begin [[E]] for "alpha"
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.reshape %0 {newshape = [4]} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.concatenate %1, %0 {axis = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  func.return %2 : tensor<8xf32>
}

// MR-7: nor past the results of an op with several of them, TVM's tuple.
// CHECK-LABEL: func.func @through_results
func.func private @two(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @through_results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[E:%.*]] = byoc.compiler_end
  // CHECK-NEXT: [[S:%.*]], [[T:%.*]] = func.call @two([[E]])
  // CHECK-NEXT: [[X:%.*]] = relay.exp [[T]]
  // CHECK-NEXT: byoc.compiler_begin [[E]] for "alpha"
  // CHECK-NEXT: byoc.compiler_begin [[X]] for "alpha"
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1, %2 = func.call @two(%0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3 = relay.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.add %0, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %4, %1 : tensor<4xf32>, tensor<4xf32>
}
