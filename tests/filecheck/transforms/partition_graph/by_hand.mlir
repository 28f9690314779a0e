// RUN: byoc-opt %s -p 'partition-graph' | filecheck %s

// A region of three ops: its first result is used inside of it, by another region, and by the
// graph; its last one by the graph alone. An input that is passed straight through stays outside.
// CHECK-LABEL: func.func @results(%x: tensor<4xf32>, %y: tensor<4xf32>)
// CHECK-NEXT: [[R:%.*]], [[A:%.*]] = func.call @a_results_0(%x, %y)
// CHECK-NEXT: [[T:%.*]] = func.call @b_results_0([[R]])
// CHECK-NEXT: func.return [[R]], [[A]], %x, [[T]]
// CHECK: func.func private @a_results_0(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {byoc.compiler = "a"} {
// CHECK-NEXT: [[R:%.*]] = relay.nn.relu %x
// CHECK-NEXT: [[S:%.*]] = relay.sigmoid [[R]]
// CHECK-NEXT: [[A:%.*]] = relay.add [[S]], %y
// CHECK-NEXT: func.return [[R]], [[A]]
// CHECK-NEXT: }
// CHECK: func.func private @b_results_0
// PG-2: no annotation is left.
// CHECK-NOT: byoc.compiler_
func.func @results(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = byoc.compiler_begin %y for "a" : tensor<4xf32>
  %2 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.sigmoid %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.add %3, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  %6 = byoc.compiler_end %4 for "a" : tensor<4xf32>
  %7 = byoc.compiler_end %0 for "a" : tensor<4xf32>
  %8 = byoc.compiler_begin %5 for "b" : tensor<4xf32>
  %9 = relay.tanh %8 : (tensor<4xf32>) -> tensor<4xf32>
  %10 = byoc.compiler_end %9 for "b" : tensor<4xf32>
  func.return %5, %6, %7, %10 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// PG-4: several begins of one value are one parameter. PG-5: several ends of one, one result.
// CHECK-LABEL: func.func @doubled(%x: tensor<4xf32>)
// CHECK-NEXT: [[R:%.*]] = func.call @a_doubled_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return [[R]], [[R]]
func.func @doubled(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %2 = relay.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  %4 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  func.return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// Drawn without inputs. Its constant is also the graph's result, and stays outside as well.
// CHECK-LABEL: func.func @no_inputs()
// CHECK-NEXT: %c = relay.constant
// CHECK-NEXT: [[R:%.*]] = func.call @a_no_inputs_0() : () -> tensor<4xf32>
// CHECK-NEXT: func.return [[R]], %c
// CHECK: func.func private @a_no_inputs_0() -> tensor<4xf32>
// CHECK-NEXT: relay.constant
func.func @no_inputs() -> (tensor<4xf32>, tensor<4xf32>) {
  %c = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.nn.relu %c : (tensor<4xf32>) -> tensor<4xf32>
  %1 = byoc.compiler_end %0 for "a" : tensor<4xf32>
  func.return %1, %c : tensor<4xf32>, tensor<4xf32>
}

// Both blocks of a loop have regions of their own; values from around the loop are inputs.
// CHECK-LABEL: func.func @loop
// CHECK-NEXT: scf.while
// CHECK-NEXT: [[N:%.*]] = func.call @a_loop_0(%{{.*}})
// CHECK-NEXT: scf.condition(%c) [[N]]
// CHECK: do
// CHECK: [[S:%.*]] = func.call @a_loop_1(%{{.*}}, %x)
// CHECK-NEXT: scf.yield [[S]]
func.func @loop(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %0 = byoc.compiler_begin %a for "a" : tensor<4xf32>
    %1 = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
    scf.condition(%c) %2 : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    %3 = byoc.compiler_begin %b for "a" : tensor<4xf32>
    %4 = byoc.compiler_begin %x for "a" : tensor<4xf32>
    %5 = relay.add %3, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = byoc.compiler_end %5 for "a" : tensor<4xf32>
    scf.yield %6 : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
