// RUN: byoc-opt %s -p 'merge-compiler-regions,partition-graph' | filecheck %s

// MR-8: a1 and c of "a" merge, z and v of "b" merge; then y and zv must not: ac needs y, zv needs
// ac. TVM's restrictions are stale by then, and its two regions need each other.
// CHECK-LABEL: func.func @main(%p: tensor<4xf32>, %q: tensor<4xf32>)
// CHECK-NEXT: [[Y:%.*]] = func.call @b_main_0(%q)
// CHECK-NEXT: [[AC:%.*]], [[A1:%.*]] = func.call @a_main_0(%p, [[Y]])
// CHECK-NEXT: [[V:%.*]] = func.call @b_main_1({{.*}})
// CHECK-NEXT: func.return
func.func @main(%p: tensor<4xf32>, %q: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %p_a = byoc.compiler_begin %p for "a" : tensor<4xf32>
  %a1_in = relay.nn.relu %p_a : (tensor<4xf32>) -> tensor<4xf32>
  %a1 = byoc.compiler_end %a1_in for "a" : tensor<4xf32>
  %a1_b = byoc.compiler_begin %a1 for "b" : tensor<4xf32>
  %z_in = relay.sigmoid %a1_b : (tensor<4xf32>) -> tensor<4xf32>
  %z = byoc.compiler_end %z_in for "b" : tensor<4xf32>
  %q_b = byoc.compiler_begin %q for "b" : tensor<4xf32>
  %y_in = relay.sigmoid %q_b : (tensor<4xf32>) -> tensor<4xf32>
  %y = byoc.compiler_end %y_in for "b" : tensor<4xf32>
  %a1_c = byoc.compiler_begin %a1 for "a" : tensor<4xf32>
  %y_c = byoc.compiler_begin %y for "a" : tensor<4xf32>
  %c_in = relay.add %a1_c, %y_c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = byoc.compiler_end %c_in for "a" : tensor<4xf32>
  %y_v = byoc.compiler_begin %y for "b" : tensor<4xf32>
  %z_v = byoc.compiler_begin %z for "b" : tensor<4xf32>
  %v_in = relay.multiply %y_v, %z_v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v = byoc.compiler_end %v_in for "b" : tensor<4xf32>
  func.return %v, %c : tensor<4xf32>, tensor<4xf32>
}
