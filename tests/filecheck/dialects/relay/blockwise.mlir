// RUN: byoc-opt %s | byoc-opt | filecheck %s
// RUN: byoc-opt %s -p convert-relay-to-linalg | filecheck %s --check-prefix=KERNEL

// A product with a weight in blocks of 32 codes of 4 bits; one zero point for all.
// CHECK-LABEL: @blocks
// KERNEL-LABEL: @blocks
func.func @blocks(%x: tensor<1x64xf32>) -> tensor<1x16xf32> {
  %w = relay.constant dense<7> : tensor<16x2x16xui8>
  %s = relay.constant dense<0.5> : tensor<16x2xf32>
  %z = relay.constant dense<8.0> : tensor<1x1xf32>
  // CHECK: relay.nn.blockwise_dense %x, %w, %s, %z : (tensor<1x64xf32>, tensor<16x2x16xui8>, tensor<16x2xf32>, tensor<1x1xf32>) -> tensor<1x16xf32>
  // KERNEL: host.kernel "blockwise_dense" %x, %w, %s, %z : (tensor<1x64xf32>, tensor<16x2x16xui8>, tensor<16x2xf32>, tensor<1x1xf32>) -> (tensor<1x16xf32>, tensor<{{[0-9]+}}x64xf32>, tensor<1x2x{{[0-9]+}}xf32>)
  %y = relay.nn.blockwise_dense %x, %w, %s, %z : (tensor<1x64xf32>, tensor<16x2x16xui8>, tensor<16x2xf32>, tensor<1x1xf32>) -> tensor<1x16xf32>
  func.return %y : tensor<1x16xf32>
}

// Data that is rounded to bytes: its bytes, the values with which blocks start, and its scales.
// CHECK-LABEL: @bytes
// KERNEL-LABEL: @bytes
func.func @bytes(%x: tensor<1x64xf32>) -> tensor<1x16xf32> {
  %w = relay.constant dense<7> : tensor<16x2x16xui8>
  %s = relay.constant dense<0.5> : tensor<16x2xf32>
  %z = relay.constant dense<8.0> : tensor<1x1xf32>
  // CHECK: relay.nn.blockwise_dense %x, %w, %s, %z {rounds = true}
  // KERNEL: host.kernel "blockwise_dense" {{.*}} -> (tensor<1x16xf32>, tensor<1x64xi8>, tensor<4x2xf32>, tensor<4x2xf32>)
  // KERNEL: host.dot_integers
  %y = relay.nn.blockwise_dense %x, %w, %s, %z {rounds = true} : (tensor<1x64xf32>, tensor<16x2x16xui8>, tensor<16x2xf32>, tensor<1x1xf32>) -> tensor<1x16xf32>
  func.return %y : tensor<1x16xf32>
}
