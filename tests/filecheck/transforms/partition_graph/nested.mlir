// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha},inline-partitions' | filecheck %s --check-prefix BACK

// Each block of a function is partitioned by itself; what another block defines is an input.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT: [[R:%.*]], [[T:%.*]] = func.call @alpha_blocks_0(%x)
// CHECK-NEXT: cf.cond_br %c, ^{{.*}}, ^{{.*}}([[T]] :
// CHECK: [[S:%.*]] = func.call @alpha_blocks_1([[R]], %x)
// CHECK-NEXT: cf.br ^{{.*}}([[S]] :
// CHECK: [[E:%.*]] = func.call @alpha_blocks_2(%{{.*}})
// CHECK-NEXT: func.return [[E]]
// BACK-LABEL: func.func @blocks
// BACK-NEXT: relay.nn.relu %x
// BACK-NEXT: relay.tanh
// BACK-NEXT: cf.cond_br
// BACK: relay.add
// BACK-NEXT: relay.tanh
// BACK-NEXT: cf.br
// BACK: relay.nn.relu
// BACK-NEXT: func.return
func.func @blocks(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %t = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  cf.cond_br %c, ^bb1, ^bb2(%t : tensor<4xf32>)
^bb1:
  %1 = relay.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = relay.tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
  cf.br ^bb2(%s : tensor<4xf32>)
^bb2(%2: tensor<4xf32>):
  %3 = relay.nn.relu %2 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// The loop stays whole on the host, with a region in its body; %0 is read before, in and after it,
// so that the two regions around it stay apart.
// CHECK-LABEL: func.func @for
// CHECK: [[R:%.*]] = func.call @alpha_for_0(%x)
// CHECK-NEXT: [[L:%.*]] = scf.for {{.*}} iter_args([[A:%.*]] = [[R]])
// CHECK-NEXT: [[B:%.*]] = func.call @alpha_for_2([[A]], [[R]])
// CHECK-NEXT: scf.yield [[B]]
// CHECK: [[E:%.*]] = func.call @alpha_for_1([[L]], [[R]])
// CHECK-NEXT: func.return [[E]]
// BACK-LABEL: func.func @for
// BACK: scf.for
// BACK-NEXT: relay.add
// BACK-NEXT: relay.tanh
// BACK-NEXT: scf.yield
func.func @for(%x: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant 0 : index
  %u = arith.constant 4 : index
  %st = arith.constant 1 : index
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %l to %u step %st iter_args(%a = %0) -> (tensor<4xf32>) {
    %1 = relay.add %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  %3 = relay.add %r, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// CHECK-LABEL: func.func @deep
// CHECK-NEXT: scf.if
// CHECK-NEXT: [[I:%.*]] = scf.if
// CHECK-NEXT: func.call @alpha_deep_1(%x)
// CHECK: func.call @alpha_deep_0([[I]])
// BACK-LABEL: func.func @deep
// BACK: relay.nn.relu %x
// BACK: relay.tanh
// BACK-NOT: func.func private
func.func @deep(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %i = scf.if %c -> (tensor<4xf32>) {
      %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      scf.yield %x : tensor<4xf32>
    }
    %1 = relay.tanh %i : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
