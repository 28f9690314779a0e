// RUN: byoc-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p convert-relay-to-linalg | filecheck %s --check-prefix LINALG

// CHECK: relay.checked %x, %n {what = "a length", least = 1, most = 80} : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
// LINALG:      host.check %n {what = "a length", least = 1 : i64, most = 80 : i64} : tensor<i64>
// LINALG-NEXT: func.return %x : tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %0 = relay.checked %x, %n {what = "a length", least = 1, most = 80} : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @other_type(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  // expected-error @below {{found must be tensor<i64>, found tensor<i32>}}
  %0 = relay.checked %x, %n {what = "a length", least = 1, most = 80} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
