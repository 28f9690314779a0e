// RUN: byoc-opt %s -p place-copies | filecheck %s

// Each value crosses once in each direction; the two backends share a device, so nothing crosses between their regions.
// CHECK-LABEL: func.func @crosses_once
// CHECK-NEXT:    [[X:%.*]] = byoc.copy %x from "host" to "npu"
// CHECK-NEXT:    %a = func.call @npu_0([[X]])
// CHECK-NEXT:    [[A:%.*]] = byoc.copy %a from "npu" to "host"
// CHECK-NEXT:    %h = math.exp [[A]]
// CHECK-NEXT:    [[H:%.*]] = byoc.copy %h from "host" to "npu"
// CHECK-NEXT:    %b = func.call @other_0(%a, [[H]])
// CHECK-NEXT:    %c = func.call @other_0(%b, [[H]])
// CHECK-NEXT:    [[C:%.*]] = byoc.copy %c from "npu" to "host"
// CHECK-NEXT:    func.return [[C]], [[C]]
func.func @crosses_once(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = func.call @npu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %h = math.exp %a : tensor<4xf32>
  %b = func.call @other_0(%a, %h) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @other_0(%b, %h) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c, %c : tensor<4xf32>, tensor<4xf32>
}

// A reshape is a view in both spaces: what it views is copied.
// CHECK-LABEL: func.func @views
// CHECK:         [[X:%.*]] = byoc.copy %x from "host" to "npu" : tensor<2x2xf32>
// CHECK-NEXT:    [[V:%.*]] = tensor.reshape [[X]]
// CHECK-NEXT:    %a = func.call @npu_0([[V]])
// CHECK-NEXT:    [[W:%.*]] = tensor.reshape %a
// CHECK-NEXT:    [[U:%.*]] = tensor.reshape [[W]]
// CHECK-NEXT:    %b = func.call @npu_0([[U]])
// CHECK-NEXT:    [[B:%.*]] = byoc.copy %b from "npu" to "host"
// CHECK-NEXT:    func.return [[B]]
func.func @views(%x: tensor<2x2xf32>) -> tensor<4xf32> {
  %flat = arith.constant dense<4> : tensor<1xi64>
  %square = arith.constant dense<2> : tensor<2xi64>
  %0 = tensor.reshape %x(%flat) : (tensor<2x2xf32>, tensor<1xi64>) -> tensor<4xf32>
  %a = func.call @npu_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tensor.reshape %a(%square) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = tensor.reshape %1(%flat) : (tensor<2x2xf32>, tensor<1xi64>) -> tensor<4xf32>
  %b = func.call @npu_0(%2) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// Between two devices, values pass through the host.
// CHECK-LABEL: func.func @two_devices
// CHECK:         %a = func.call @npu_0(
// CHECK-NEXT:    [[A:%.*]] = byoc.copy %a from "npu" to "host"
// CHECK-NEXT:    [[G:%.*]] = byoc.copy [[A]] from "host" to "gpu"
// CHECK-NEXT:    %b = func.call @gpu_0([[G]])
// CHECK-NEXT:    [[B:%.*]] = byoc.copy %b from "gpu" to "host"
func.func @two_devices(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @npu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @gpu_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// A function of control flow gets its values, and returns them, on the host.
// CHECK-LABEL: func.func @main
// CHECK:         [[A:%.*]] = byoc.copy %a from "npu" to "host"
// CHECK:         relay.if %c, [[A]] {then_branch = @then, else_branch = @else}
// CHECK-LABEL: func.func private @then
// CHECK-NEXT:    [[X:%.*]] = byoc.copy %x from "host" to "npu"
// CHECK-NEXT:    [[R:%.*]] = func.call @npu_0([[X]])
// CHECK-NEXT:    [[Y:%.*]] = byoc.copy [[R]] from "npu" to "host"
// CHECK-NEXT:    func.return [[Y]]
// CHECK-LABEL: func.func private @else
// CHECK-NEXT:    func.return %x
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @npu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = relay.if %c, %a {then_branch = @then, else_branch = @else} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @then(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @npu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @else(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// The regions of a backend without a device get the host's memory.
// CHECK-LABEL: func.func @no_device
// CHECK-NEXT:    %0 = func.call @cpu_0(%x)
// CHECK-NEXT:    func.return %0
func.func @no_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @cpu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

func.func private @npu_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
func.func private @other_0(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "other", byoc.memory_space = "npu"}
func.func private @gpu_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "gpu", byoc.memory_space = "gpu"}
func.func private @cpu_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "cpu"}
