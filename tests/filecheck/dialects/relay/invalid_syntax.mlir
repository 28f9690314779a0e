// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{expected a decimal point, or the bit pattern of infinity or NaN}}
  %0 = relay.clip %x {a_min = 1 : f64, a_max = 2.0} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{property 'a_min' is given twice}}
  %0 = relay.clip %x {a_min = 1.0, a_min = 2.0} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}
