// RUN: byoc-opt %s --verify-diagnostics -p 'inline-partitions{functions=a_main_0,c_main_0}'

// expected-error @unknown {{no outlined region is called @c_main_0; there are @a_main_0, @b_main_0}}
func.func private @a_main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "a"} {
  func.return %x : tensor<4xf32>
}
func.func private @b_main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "b"} {
  func.return %x : tensor<4xf32>
}
