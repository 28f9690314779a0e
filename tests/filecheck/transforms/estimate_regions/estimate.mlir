// RUN: byoc-opt --backend %backends %s -p 'partition-for{targets=alpha,beta},estimate-regions{targets=alpha,beta rates="%S/Inputs/rates.json"}' | filecheck %s

// A backend that says nothing; the host moves 8 MB.
// CHECK: func.func private @alpha_unknown_0
// CHECK-SAME: byoc.times = {backend = "alpha", obtained = "estimated", host_milliseconds = 0.55{{[0-9]*}} : f64}
func.func @unknown(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %0 = relay.nn.relu %x : (tensor<1048576xf32>) -> tensor<1048576xf32>
  func.return %0 : tensor<1048576xf32>
}
