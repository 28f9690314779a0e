// Hexadecimal elements of dense attributes are bits of floats, and numbers of integers.
// RUN: byoc-opt %s | byoc-opt | filecheck %s

// CHECK: dense<0x4B400000> : vector<2xf32>
// CHECK: dense<[0x7f800000, 0xff800000, 0x7fc00000]> : tensor<3xf32>
// CHECK: dense<0xfc00> : tensor<2xf16>
// CHECK: dense<16> : tensor<2xi32>
func.func @bits() {
  %0 = arith.constant dense<0x4B400000> : vector<2xf32>
  %1 = arith.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<3xf32>
  %2 = arith.constant dense<0xFC00> : tensor<2xf16>
  %3 = arith.constant dense<0x10> : tensor<2xi32>
  func.return
}
