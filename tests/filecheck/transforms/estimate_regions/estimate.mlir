// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta},estimate-regions{targets=alpha,beta calibration="%S/Inputs/calibration.json"}' | filecheck %s

// A backend that says nothing; the host moves 8 MB.
// CHECK: func.func private @alpha_unknown_0
// CHECK-SAME: byoc.times = {backend = "alpha", obtained = "estimated", host_milliseconds = 0.55{{[0-9]*}} : f64}
func.func @unknown(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %0 = relay.nn.relu %x : (tensor<1048576xf32>) -> tensor<1048576xf32>
  func.return %0 : tensor<1048576xf32>
}

// A function of each element; the product is fused with it.
// CHECK: func.func private @beta_said_0
// CHECK-SAME: byoc.times = {backend = "beta", obtained = "estimated", backend_milliseconds = 2.500000e+00 : f64, host_milliseconds = 1.03{{[0-9]*}} : f64}
func.func @said(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %0 = relay.sigmoid %x : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %1 = relay.multiply %x, %0 : (tensor<1048576xf32>, tensor<1048576xf32>) -> tensor<1048576xf32>
  func.return %1 : tensor<1048576xf32>
}

// What the host has no rate for.
// CHECK: func.func private @alpha_integers_0
// CHECK-SAME: byoc.times = {backend = "alpha", obtained = "estimated"}
func.func @integers(%x: tensor<4xi64>) -> tensor<4xi64> {
  %0 = relay.add %x, %x : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  func.return %0 : tensor<4xi64>
}

// Bytes are moved as well: 2 MB of them.
// CHECK: func.func private @alpha_bytes_0
// CHECK-SAME: byoc.times = {backend = "alpha", obtained = "estimated", host_milliseconds = 0.13{{[0-9]*}} : f64}
func.func @bytes(%x: tensor<1048576xi8>) -> tensor<1048576xi8> {
  %0 = relay.nn.relu %x : (tensor<1048576xi8>) -> tensor<1048576xi8>
  func.return %0 : tensor<1048576xi8>
}
