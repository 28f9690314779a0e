// RUN: byoc-opt %s | byoc-opt | filecheck %s
// RUN: byoc-opt %s --print-op-generic | byoc-opt | filecheck %s

// CHECK-LABEL: func.func @marks
func.func @marks(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %{{.*}} = byoc.compiler_begin %{{.*}} for "npu" : tensor<4xf32>
  %0 = byoc.compiler_begin %x for "npu" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %{{.*}} = byoc.compiler_end %{{.*}} for "npu" {note = "kept"} : tensor<4xf32>
  %2 = byoc.compiler_end %1 for "npu" {note = "kept"} : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @composite
func.func @composite(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %{{.*}} = byoc.composite "npu.add_relu" from "add_nn.relu_" (%{{.*}} = %{{.*}} : tensor<4xf32>, %{{.*}} = %{{.*}} : tensor<4xf32>) -> tensor<4xf32> attributes {note = "kept"} {
  %0 = byoc.composite "npu.add_relu" from "add_nn.relu_" (%a = %x : tensor<4xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32> attributes {note = "kept"} {
    // CHECK-NEXT: relay.add
    %1 = relay.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: byoc.yield %{{.*}} : tensor<4xf32>
    byoc.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @results
func.func @results(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: %{{.*}}, %{{.*}} = byoc.composite "npu.halves" from "split_" (%{{.*}} = %{{.*}} : tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0, %1 = byoc.composite "npu.halves" from "split_" (%a = %x : tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %2, %3 = relay.split %a {sections = [2, 2], axis = 0} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    byoc.yield %2, %3 : tensor<2xf32>, tensor<2xf32>
  }
  func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @no_inputs
func.func @no_inputs() -> tensor<f32> {
  // CHECK-NEXT: byoc.composite "npu.one" from "" () -> tensor<f32> {
  %0 = byoc.composite "npu.one" from "" () -> tensor<f32> {
    %1 = relay.constant dense<1.0> : tensor<f32>
    byoc.yield %1 : tensor<f32>
  }
  func.return %0 : tensor<f32>
}
