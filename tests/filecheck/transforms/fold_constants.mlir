// RUN: byoc-opt %s --split-input-file -p fold-constants | filecheck %s

func.func @chain(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = relay.constant dense<3.0> : tensor<f32>
  %0 = relay.add %a, %b : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = relay.negative %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = relay.add %x, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %2 : tensor<2xf32>
}
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[C:.*]] = relay.constant dense<[-4.000000e+00, -5.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    relay.add %{{.*}}, %[[C]]

// -----

func.func @several_results() -> (tensor<1xi64>, tensor<2xi64>) {
  %a = relay.constant dense<[1, 2, 3]> : tensor<3xi64>
  %0, %1 = relay.split %a {sections = [1, 2], axis = 0} : (tensor<3xi64>) -> (tensor<1xi64>, tensor<2xi64>)
  func.return %0, %1 : tensor<1xi64>, tensor<2xi64>
}
// CHECK-LABEL: func.func @several_results
// CHECK-NEXT:    relay.constant dense<1> : tensor<1xi64>
// CHECK-NEXT:    relay.constant dense<[2, 3]> : tensor<2xi64>

// -----

// weights whose bytes are not loaded stay
func.func @no_store() -> tensor<64xf32> {
  %w = relay.constant #relay.weight<"w", "00"> : tensor<64xf32>
  %0 = relay.negative %w : (tensor<64xf32>) -> tensor<64xf32>
  func.return %0 : tensor<64xf32>
}
// CHECK-LABEL: func.func @no_store
// CHECK:         relay.negative

// -----

// a backend's region is the backend's
func.func private @region() -> tensor<2xf32> attributes {byoc.compiler = "dnnl"} {
  %a = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.negative %a : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK-LABEL: func.func private @region
// CHECK:         relay.negative
