// RUN: byoc-opt %s --split-input-file --parsing-diagnostics | filecheck %s

func.func @f(%x: tensor<2xf32>) {
  %0 = relay.clip %x {a_min = 1 : f64, a_max = 2.0} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}
// CHECK: expected a decimal point, or the bit pattern of infinity or NaN

// -----

func.func @f(%x: tensor<2xf32>) {
  %0 = relay.clip %x {a_min = 1.0, a_min = 2.0} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}
// CHECK: property 'a_min' is given twice
