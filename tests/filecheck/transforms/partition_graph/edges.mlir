// RUN: byoc-opt %s -p 'partition-graph' | filecheck %s

// PG-15: an empty region is no region. A begin without users goes.
// CHECK-LABEL: func.func @empty(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: func.return %x
func.func @empty(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = byoc.compiler_end %0 for "a" : tensor<4xf32>
  %2 = byoc.compiler_begin %1 for "b" : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// PG-14: a region without a used result stays where it is, for dead code elimination.
// CHECK-LABEL: func.func @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: relay.nn.relu %x
// CHECK-NEXT: func.return %x
func.func @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// PG-13: what is outlined already stays as it is, and its call has no effects: nothing is named
// again, and the new regions on both sides of it merge.
// CHECK-LABEL: func.func @again
// CHECK-NEXT: [[B:%.*]] = func.call @b_again_0(%x)
// CHECK-NEXT: func.call @a_again_0(%x, [[B]])
func.func @again(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  %3 = func.call @b_again_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = byoc.compiler_begin %3 for "a" : tensor<4xf32>
  %5 = relay.add %4, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = byoc.compiler_end %5 for "a" : tensor<4xf32>
  func.return %2, %6 : tensor<4xf32>, tensor<4xf32>
}
// CHECK: func.func private @b_again_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "b"} {
// CHECK-NEXT: relay.tanh %x
func.func private @b_again_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "b"} {
  %0 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
