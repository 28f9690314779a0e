// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha}' --print-debuginfo | byoc-opt --print-debuginfo | filecheck %s

// Locations stay on the ops; the call stands for all nodes of its region.
// CHECK: func.call @alpha_main_0(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(fused["Relu_0", "Tanh_1"])
// CHECK: relay.nn.relu %{{.*}} loc("Relu_0")
// CHECK: relay.tanh %{{.*}} loc("Tanh_1")
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("Relu_0")
  %1 = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32> loc("Tanh_1")
  func.return %1 : tensor<4xf32>
}
