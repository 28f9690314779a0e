// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @inline() {
  %0 = relay.constant dense<2.0> : tensor<f32>
  %1 = relay.constant dense<[1, 2]> : tensor<2xui8>
  %2 = relay.constant dense<[true, false]> : tensor<2xi1>
  func.return
}
// CHECK-LABEL: func.func @inline
// CHECK-NEXT:    relay.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT:    relay.constant dense<[1, 2]> : tensor<2xui8>
// CHECK-NEXT:    relay.constant dense<[true, false]> : tensor<2xi1>

func.func @by_handle() {
  %0 = relay.constant #relay.weight<"fc1.\"weight\"", "0f3c"> : tensor<64x128xf32>
  func.return
}
// CHECK-LABEL: func.func @by_handle
// CHECK-NEXT:    relay.constant #relay.weight<"fc1.\22weight\22", "0f3c"> : tensor<64x128xf32>
