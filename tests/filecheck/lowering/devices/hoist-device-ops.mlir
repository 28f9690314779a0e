// RUN: byoc-opt %s -p hoist-device-ops | filecheck %s

// The device starts before the host works, and the host first does what reads no result of the device.
// CHECK-LABEL: func.func @beside
// CHECK-NEXT:    [[X:%.*]] = byoc.copy %x from "host" to "npu"
// CHECK-NEXT:    %d = func.call @npu_0([[X]])
// CHECK-NEXT:    %h = byoc.copy %d from "npu" to "host"
// CHECK-NEXT:    %s = math.sin %x
// CHECK-NEXT:    %t = math.cos %s
// CHECK-NEXT:    %e = math.exp %h
// CHECK-NEXT:    func.return %e, %t
func.func @beside(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = math.sin %x : tensor<4xf32>
  %0 = byoc.copy %x from "host" to "npu" : tensor<4xf32>
  %d = func.call @npu_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %h = byoc.copy %d from "npu" to "host" : tensor<4xf32>
  %e = math.exp %h : tensor<4xf32>
  %t = math.cos %s : tensor<4xf32>
  func.return %e, %t : tensor<4xf32>, tensor<4xf32>
}

// A view of a value that is on its way is no read of it; a host op on the view is one.
// CHECK-LABEL: func.func @through_a_view
// CHECK:         %v = tensor.reshape %h
// CHECK:         %s = math.sin %x
// CHECK-NEXT:    %e = math.exp %v
func.func @through_a_view(%x: tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %square = arith.constant dense<2> : tensor<2xi64>
  %0 = byoc.copy %x from "host" to "npu" : tensor<4xf32>
  %d = func.call @npu_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %h = byoc.copy %d from "npu" to "host" : tensor<4xf32>
  %v = tensor.reshape %h(%square) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %e = math.exp %v : tensor<2x2xf32>
  %s = math.sin %x : tensor<4xf32>
  func.return %e, %s : tensor<2x2xf32>, tensor<4xf32>
}

// Ops of the host keep their order, and their order with checks.
// CHECK-LABEL: func.func @in_order
// CHECK:         %s = math.sin %x
// CHECK-NEXT:    %t = math.cos %x
// CHECK-NEXT:    func.return
func.func @in_order(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %s = math.sin %x : tensor<4xf32>
  %t = math.cos %x : tensor<4xf32>
  %0 = byoc.copy %x from "host" to "npu" : tensor<4xf32>
  %d = func.call @npu_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %h = byoc.copy %d from "npu" to "host" : tensor<4xf32>
  func.return %s, %t, %h : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func private @npu_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
