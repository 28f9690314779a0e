// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha,beta},merge-compiler-regions,partition-graph' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha,beta},merge-compiler-regions,partition-graph{bind-constants=false}' | filecheck %s --check-prefix PASSED
// The four passes in order are partition-for.
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta}' | filecheck %s

// PG-4: one parameter for each distinct value, in order of first use. PG-5: one result for each
// distinct value that is used outside, in the order of the ops, however often it is used.
// PG-8: the function's attribute. PG-9: its name.
// CHECK-LABEL: func.func @values(%x: tensor<4xf32>, %y: tensor<4xf32>)
// CHECK-NEXT: [[R:%.*]], [[T:%.*]] = func.call @alpha_values_0(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: [[X:%.*]] = relay.exp [[R]]
// CHECK-NEXT: func.return [[R]], [[T]], [[R]], [[X]]
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @alpha_values_0(%y: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {byoc.compiler = "alpha"} {
// CHECK-NEXT: [[A:%.*]] = relay.add %y, %x
// CHECK-NEXT: [[B:%.*]] = relay.nn.relu [[A]]
// CHECK-NEXT: [[C:%.*]] = relay.add [[B]], %x
// CHECK-NEXT: func.return [[B]], [[C]]
func.func @values(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.add %1, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %2, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// PG-6: constants are bound, each once; or they stay arguments.
// CHECK-LABEL: func.func @constants(%x: tensor<4xf32>)
// CHECK-NEXT: func.call @alpha_constants_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: func.func private @alpha_constants_0(%x: tensor<4xf32>)
// CHECK-NEXT: [[C:%.*]] = relay.constant
// CHECK-NEXT: [[A:%.*]] = relay.add %x, [[C]]
// CHECK-NEXT: relay.add [[A]], [[C]]
// PASSED-LABEL: func.func @constants(%x: tensor<4xf32>)
// PASSED-NEXT: [[C:%.*]] = relay.constant
// PASSED-NEXT: func.call @alpha_constants_0(%x, [[C]]) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<2.0> : tensor<f32>
  %0 = relay.add %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = relay.add %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// A region without arguments.
// CHECK-LABEL: func.func @no_arguments()
// CHECK-NEXT: func.call @alpha_no_arguments_0() : () -> tensor<4xf32>
// CHECK: func.func private @alpha_no_arguments_0() -> tensor<4xf32>
func.func @no_arguments() -> tensor<4xf32> {
  %c = relay.constant dense<2.0> : tensor<4xf32>
  %0 = relay.nn.relu %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// PG-10: numbers without gaps, for each backend and function, in program order.
// CHECK-LABEL: func.func @numbers
// CHECK: func.call @alpha_numbers_0(
// CHECK: func.call @beta_numbers_0(
// CHECK: func.call @alpha_numbers_1(
func.func @numbers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// PG-1: results of ops with several results come out one by one; unused ones do not.
// CHECK-LABEL: func.func @flat
// CHECK: [[A:%.*]] = func.call @alpha_flat_0(%x) : (tensor<4xf32>) -> tensor<2xf32>
func.func @flat(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0, %1 = relay.split %x {sections = [2, 2], axis = 0} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<2xf32>
}

// The ops are put in a new order where the region must run as a whole: exp after both adds.
// CHECK-LABEL: func.func @reordered
// CHECK-NEXT: [[X:%.*]] = relay.exp %y
// CHECK-NEXT: [[A:%.*]], [[B:%.*]] = func.call @alpha_reordered_0(%x, [[X]])
// CHECK-NEXT: relay.exp [[A]]
func.func @reordered(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.add %0, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// Ops with effects keep their order; a call that may have effects is nothing to merge across.
// CHECK-LABEL: func.func @effects
// CHECK-NEXT: func.call @unknown()
// CHECK-NEXT: func.call @alpha_effects_0(%x)
// CHECK-NEXT: func.call @unknown()
func.func private @unknown() -> ()
func.func @effects(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.call @unknown() : () -> ()
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.call @unknown() : () -> ()
  func.return %0 : tensor<4xf32>
}

// Blocks of nested regions are partitioned by themselves; the function comes after its caller.
// CHECK-LABEL: func.func @nested
// CHECK: scf.if
// CHECK-NEXT: func.call @alpha_nested_0(%x)
// CHECK: func.func private @alpha_nested_0(%x: tensor<4xf32>)
func.func @nested(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
