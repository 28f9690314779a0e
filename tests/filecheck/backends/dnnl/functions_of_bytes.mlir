// RUN: byoc-opt %s -p 'annotate-target{targets=dnnl}' | filecheck %s

// What fills no table of bytes stays on the host, with the reason.
// CHECK-LABEL: func.func @results
func.func @results(%x: tensor<1x8x4x4xui8>, %i: tensor<1x8x4x4xi32>) -> (tensor<1x8x4x4xi16>, tensor<1x8x4x4xui8>, tensor<1x8x4x4xui8>) {
  %s = relay.constant dense<0.5> : tensor<f32>
  %z = relay.constant dense<0> : tensor<ui8>
  %c = relay.constant dense<0> : tensor<i32>
  %w = relay.constant dense<0> : tensor<i16>
  // CHECK: relay.qnn.requantize {{.*}}ui8 becomes i16 (tables are of bytes)
  %0 = relay.qnn.requantize %x, %s, %z, %s, %w : (tensor<1x8x4x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i16>) -> tensor<1x8x4x4xi16>
  // CHECK: relay.qnn.requantize {{.*}}i32 becomes ui8 (tables are of bytes)
  %1 = relay.qnn.requantize %i, %s, %c, %s, %z : (tensor<1x8x4x4xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<1x8x4x4xui8>
  // CHECK: relay.qnn.requantize {{.*}}qnn.requantize away from any primitive (cheaper on the host)
  %2 = relay.qnn.requantize %x, %s, %z, %s, %z : (tensor<1x8x4x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x8x4x4xui8>
  func.return %0, %1, %2 : tensor<1x8x4x4xi16>, tensor<1x8x4x4xui8>, tensor<1x8x4x4xui8>
}
