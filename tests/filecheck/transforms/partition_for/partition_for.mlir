// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta}' | byoc-opt --backend %backends -p 'partition-for{targets=alpha,beta}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha},partition-for{targets=beta}' | filecheck %s
// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta},inline-partitions,partition-for{targets=alpha,beta}' | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[A:%.*]] = func.call @alpha_main_0(%x, %w)
// CHECK-NEXT: [[B:%.*]] = func.call @beta_main_0([[A]])
// CHECK-NEXT: [[E:%.*]] = relay.exp [[B]] {byoc.reason
// CHECK-NEXT: func.return [[E]]
// CHECK-DAG: func.func private @alpha_main_0({{.*}}) -> tensor<1x4x6x6xf32> attributes {byoc.compiler = "alpha"}
// CHECK-DAG: byoc.composite "alpha.conv2d_bias" from "nn.conv2d_nn.bias_add_nn.relu_"
// CHECK-DAG: func.func private @beta_main_0({{.*}}) -> tensor<1x4x6x6xf32> attributes {byoc.compiler = "beta"}
// CHECK-DAG: byoc.composite "beta.swish" from "sigmoid_multiply_"
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %b = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %2 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %3 = relay.sigmoid %2 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %4 = relay.multiply %2, %3 : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %5 = relay.exp %4 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %5 : tensor<1x4x6x6xf32>
}
