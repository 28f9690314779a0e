// RUN: byoc-opt %s --split-input-file -p widen-products | filecheck %s

func.func @weights(%x: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %w = relay.constant dense<0.5> : tensor<2x2xf16>
  %0 = relay.nn.dense %x, %w : (tensor<4x2xf16>, tensor<2x2xf16>) -> tensor<4x2xf16>
  func.return %0 : tensor<4x2xf16>
}
// CHECK-LABEL: func.func @weights
// CHECK:         %[[X:.*]] = relay.cast %x {dtype = f32}
// CHECK-NEXT:    %[[W:.*]] = relay.constant dense<5.000000e-01> : tensor<2x2xf32>
// CHECK-NEXT:    %[[Y:.*]] = relay.nn.dense %[[X]], %[[W]]
// CHECK-NEXT:    relay.cast %[[Y]] {dtype = f16}

// -----

func.func @result_of_f32(%a: tensor<4x2xbf16>, %b: tensor<2x3xbf16>) -> tensor<4x3xf32> {
  %0 = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x2xbf16>, tensor<2x3xbf16>) -> tensor<4x3xf32>
  func.return %0 : tensor<4x3xf32>
}
// CHECK-LABEL: func.func @result_of_f32
// CHECK-NEXT:    %[[A:.*]] = relay.cast %a {dtype = f32}
// CHECK-NEXT:    %[[B:.*]] = relay.cast %b {dtype = f32}
// CHECK-NEXT:    %[[Y:.*]] = relay.nn.matmul %[[A]], %[[B]] : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:    func.return %[[Y]]

// -----

// A backend's region is not the host's.
func.func private @region(%x: tensor<4x2xbf16>, %w: tensor<2x2xbf16>) -> tensor<4x2xbf16> attributes {byoc.compiler = "alpha"} {
  %0 = relay.nn.dense %x, %w : (tensor<4x2xbf16>, tensor<2x2xbf16>) -> tensor<4x2xbf16>
  func.return %0 : tensor<4x2xbf16>
}
// CHECK-LABEL: func.func private @region
// CHECK-NEXT:    relay.nn.dense %x, %w : (tensor<4x2xbf16>, tensor<2x2xbf16>) -> tensor<4x2xbf16>
