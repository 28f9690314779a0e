// RUN: byoc-opt %s -p 'partition-graph' | filecheck %s

// PG-9, PG-11: symbols stay readable and unique whatever the names are; "a-b" and "a_b" do not
// collide after sanitising, and neither do functions that are there already.
// CHECK-LABEL: func.func @a_b_main_0()
func.func @a_b_main_0() {
  func.return
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: func.call @a_b_main_1(%x)
// CHECK-NEXT: func.call @a_b_main_2(%x)
// CHECK: func.func private @a_b_main_1(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "a-b"}
// CHECK: func.func private @a_b_main_2(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "a_b"}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = byoc.compiler_begin %x for "a-b" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a-b" : tensor<4xf32>
  %3 = byoc.compiler_begin %x for "a_b" : tensor<4xf32>
  %4 = relay.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = byoc.compiler_end %4 for "a_b" : tensor<4xf32>
  func.return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// PG-3: all functions are partitioned, and named by theirs.
// CHECK-LABEL: func.func @"torch.jit/1 main"
// CHECK-NEXT: func.call @_3d_torch_jit_1_main_0(%x)
func.func @"torch.jit/1 main"(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "3d" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "3d" : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
