// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @reinterpret(%0: tensor<2xf32>) -> tensor<2xi32> {
  %1 = relay.reinterpret %0 {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  func.return %1 : tensor<2xi32>
}
// CHECK-LABEL: func.func @reinterpret(
// CHECK-NEXT:    %1 = relay.reinterpret %0 {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
