// RUN: printf '{"version": 2, "measurements": {"openblas/48x64x32": {"unit": "blocks", "source": "a test", "value": "48x16x32"}, "openblas/48x64x32 panels": {"unit": "blocks", "source": "a test", "value": "16x32x8"}}}' > %t.json
// RUN: byoc-opt %s -p 'choose-openblas-blocks{calibration="%t.json"}' | filecheck %s

func.func private @constants(%x: tensor<48x32xf32>) -> tensor<48x64xf32> attributes {byoc.compiler = "openblas"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<64x32xf32>
  %0 = relay.nn.dense %x, %w : (tensor<48x32xf32>, tensor<64x32xf32>) -> tensor<48x64xf32>
  func.return %0 : tensor<48x64xf32>
}
// CHECK-LABEL: func.func private @constants
// CHECK:         relay.nn.dense %x, %w {{.*}}openblas.block{{.*}}"16x32x8"

// A matrix that is stored transposed, and comes when the model runs, is read in one call.
func.func private @inputs(%x: tensor<48x32xf32>, %v: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> (tensor<48x64xf32>, tensor<48x64xf32>) attributes {byoc.compiler = "openblas"} {
  %0 = relay.nn.matmul %x, %v : (tensor<48x32xf32>, tensor<32x64xf32>) -> tensor<48x64xf32>
  %1 = relay.nn.dense %x, %w : (tensor<48x32xf32>, tensor<64x32xf32>) -> tensor<48x64xf32>
  func.return %0, %1 : tensor<48x64xf32>, tensor<48x64xf32>
}
// CHECK-LABEL: func.func private @inputs
// CHECK:         relay.nn.matmul %x, %v {{.*}}"48x16x32"
// CHECK-NEXT:    relay.nn.dense %x, %w :

// Regions of others are left alone.
func.func private @another(%x: tensor<48x32xf32>, %v: tensor<32x64xf32>) -> tensor<48x64xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = relay.nn.matmul %x, %v : (tensor<48x32xf32>, tensor<32x64xf32>) -> tensor<48x64xf32>
  func.return %0 : tensor<48x64xf32>
}
// CHECK-LABEL: func.func private @another
// CHECK-NEXT:    relay.nn.matmul %x, %v :
