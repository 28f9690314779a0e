// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha,beta}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=beta,alpha}' | filecheck %s --check-prefix BETA
// AT-11: once more changes nothing, and one target after the other is the same as both.
// RUN: byoc-opt --backend %backends %s -p 'annotate-target{targets=alpha},annotate-target{targets=alpha,beta}' | filecheck %s

// AT-1, AT-9: an accepted op has a begin for each operand and an end for each used result.
// AT-2: the first target that accepts. AT-5, MR-2: what stays on the host has no marks, and a
// reason. AT-13: no op is too small.
// CHECK-LABEL: func.func @single
// BETA-LABEL: func.func @single
func.func @single(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: [[A:%.*]] = byoc.compiler_begin %x for "alpha"
  // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %y for "alpha"
  // CHECK-NEXT: [[R:%.*]] = relay.add [[A]], [[B]] : (tensor
  // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end [[R]] for "alpha"
  // CHECK-NEXT: [[X:%.*]] = relay.exp [[E]] {byoc.reason = "alpha: no rule for exp
  // CHECK-NEXT: func.return [[X]]
  // BETA: byoc.compiler_begin %x for "beta"
  %0 = relay.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// One begin for each value, one end for all users; constants need none.
// CHECK-LABEL: func.func @distinct
func.func @distinct(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: relay.constant
  // CHECK-NEXT: [[A:%.*]] = byoc.compiler_begin %x for "alpha"
  // CHECK-NEXT: [[R:%.*]] = relay.add [[A]], [[A]]
  // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end [[R]] for "alpha"
  // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin [[E]] for "alpha"
  // CHECK-NEXT: relay.add [[B]], %c
  // CHECK-NEXT: byoc.compiler_end
  // CHECK-NEXT: func.return [[E]], %{{.*}}
  %c = relay.constant dense<2.0> : tensor<f32>
  %0 = relay.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.add %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// A rule's reason is kept.
// CHECK-LABEL: func.func @refused
func.func @refused(%x: tensor<1x2x4x4xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x2x2x2xf32> {
  // CHECK-NEXT: relay.nn.conv2d %x, %w {{.*}}byoc.reason = "alpha: 2 groups; beta: no rule for nn.conv2d"
  // BETA: relay.nn.conv2d %x, %w {{.*}}byoc.reason = "beta: no rule for nn.conv2d; alpha: 2 groups"
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = 2} : (tensor<1x2x4x4xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x2x2xf32>
  func.return %0 : tensor<1x2x2x2xf32>
}

// AT-3: a composite is its backend's, whatever the rules. AT-4: its body is not annotated.
// CHECK-LABEL: func.func @composite
func.func @composite(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[A:%.*]] = byoc.compiler_begin %x for "beta"
  // CHECK-NEXT: [[R:%.*]] = byoc.composite "beta.some.thing" from "" (%{{.*}} = [[A]] : tensor<4xf32>)
  // CHECK-NEXT: relay.add
  // CHECK-NEXT: byoc.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: byoc.compiler_end [[R]] for "beta"
  %0 = byoc.composite "beta.some.thing" from "" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %1 = relay.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %1 : tensor<4xf32>
  }
  // CHECK-NEXT: byoc.composite "gamma.thing" {{.*}} attributes {byoc.reason = "composite 'gamma.thing' belongs to no requested target"} {
  %2 = byoc.composite "gamma.thing" from "" (%b = %x : tensor<4xf32>) -> tensor<4xf32> {
    %3 = relay.add %b, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %3 : tensor<4xf32>
  }
  func.return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// AT-6: several results need no op of their own; only those that are used end.
// CHECK-LABEL: func.func @results
func.func @results(%x: tensor<4xf32>) -> tensor<2xf32> {
  // CHECK: [[R:%.*]], [[S:%.*]] = relay.split
  // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end [[S]] for "alpha"
  // CHECK-NEXT: func.return [[E]]
  %0, %1 = relay.split %x {sections = [2, 2], axis = 0} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<2xf32>
}

// AT-7: the op with regions stays on the host; inside of it, each block is annotated by itself.
// CHECK-LABEL: func.func @nested
func.func @nested(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: scf.if
  %r = scf.if %c -> (tensor<4xf32>) {
    // CHECK-NEXT: [[B:%.*]] = byoc.compiler_begin %x for "alpha"
    // CHECK-NEXT: relay.nn.relu [[B]]
    // CHECK-NEXT: [[E:%.*]] = byoc.compiler_end
    // CHECK-NEXT: scf.yield [[E]]
    %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  // CHECK: {byoc.reason = "scf.if has side effects or regions"}
  func.return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @loop
func.func @loop(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: scf.while
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    // CHECK: byoc.compiler_begin %b for "alpha"
    // CHECK-NEXT: relay.nn.relu
    // CHECK-NEXT: byoc.compiler_end
    // CHECK-NEXT: scf.yield
    %0 = relay.nn.relu %b : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// PG-14: dead ops are not offloaded.
// CHECK-LABEL: func.func @dead
func.func @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: relay.nn.relu %x {byoc.reason = "its results are not used"}
  // CHECK-NEXT: relay.nn.relu %{{.*}} {byoc.reason = "its results are not used"}
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// AT-10: an op on constants alone can be offloaded; it needs no begin.
// CHECK-LABEL: func.func @no_operands
func.func @no_operands() -> tensor<4xf32> {
  // CHECK: relay.nn.relu %c :
  // CHECK-NEXT: byoc.compiler_end
  %c = relay.constant dense<2.0> : tensor<4xf32>
  %0 = relay.nn.relu %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @taken
func.func private @taken(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"} {
  // CHECK-NEXT: relay.nn.relu %x : (tensor
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
