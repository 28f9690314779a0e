// RUN: byoc-opt %s | byoc-opt | filecheck %s

// Trees: the roots, the steps of each, and the tables of nodes and leaves.
// CHECK-LABEL: @trees
func.func @trees(%x: tensor<4x3xf32>, %t: tensor<2xi32>, %n: tensor<6xi32>, %v: tensor<6xf32>, %l: tensor<4xi32>, %w: tensor<4x1xf32>) -> tensor<4x2xf32> {
  // CHECK: relay.ml.tree_ensemble {{.*}} {targets = 2, aggregate = "max"}
  %y = relay.ml.tree_ensemble %x, %t, %t, %n, %n, %v, %n, %l, %w {targets = 2, aggregate = "max"} : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xf32>, tensor<6xi32>, tensor<4xi32>, tensor<4x1xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// Three classes have three pairs.
// CHECK-LABEL: @pairs
func.func @pairs(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: relay.ml.pairwise_coupling %x {classes = 3} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = relay.ml.pairwise_coupling %x {classes = 3} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
