// RUN: byoc-opt %s -p 'inline-partitions' | filecheck %s
// RUN: byoc-opt %s -p 'inline-partitions{functions=b_main_0}' | filecheck %s --check-prefix ONE

// CF-4: regions and the composites in them go back into the callers, every call of them.
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>)
// CHECK-NEXT: [[C:%.*]] = relay.constant
// CHECK-NEXT: [[A:%.*]] = relay.add %x, [[C]]
// CHECK-NEXT: [[R:%.*]] = relay.nn.relu [[A]]
// CHECK-NEXT: [[T:%.*]] = relay.tanh [[R]]
// CHECK-NEXT: [[U:%.*]] = relay.tanh [[T]]
// CHECK-NEXT: func.return [[U]], [[R]]
// CHECK-NOT: func.func
// ONE-LABEL: func.func @main(%x: tensor<4xf32>)
// ONE-NEXT: [[R:%.*]], %{{.*}} = func.call @a_main_0(%x)
// ONE-NEXT: relay.tanh [[R]]
// ONE: func.func private @a_main_0
// ONE: byoc.composite
// ONE-NOT: @b_main_0
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0, %1 = func.call @a_main_0(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = func.call @b_main_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = func.call @b_main_0(%2) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3, %0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @a_main_0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {byoc.compiler = "a"} {
  %c = relay.constant dense<2.0> : tensor<f32>
  %0 = byoc.composite "a.add_relu" from "add_nn.relu_" (%a = %x : tensor<4xf32>, %b = %c : tensor<f32>) -> tensor<4xf32> {
    %1 = relay.add %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %2 : tensor<4xf32>
  }
  func.return %0, %x : tensor<4xf32>, tensor<4xf32>
}
func.func private @b_main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "b"} {
  %0 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
