// RUN: byoc-opt %s --split-input-file -p 'lower-integer-products{lanes=8 words=pairs}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'lower-integer-products{lanes=8 words=widened}' | filecheck %s --check-prefix WIDENED
// RUN: byoc-opt %s --split-input-file -p 'lower-integer-products{lanes=8 words=overlapping}' | filecheck %s --check-prefix OVER
// RUN: byoc-opt %s --split-input-file -p 'lower-integer-products{lanes=16 vnni=true}' | filecheck %s --check-prefix VNNI

// Pairs of i16, the zero point taken off; with VNNI bytes as they are, and sums that begin with
// what the zero point adds: -(3 * (1 + 2 + 3 + 4)).
func.func @dense(%x: tensor<2x4xui8>) -> tensor<2x1xui8> {
  %w = relay.constant dense<[[1, 2, 3, 4]]> : tensor<1x4xi8>
  %x_zero = relay.constant dense<3> : tensor<ui8>
  %w_zero = relay.constant dense<0> : tensor<i8>
  %c0 = relay.constant dense<0> : tensor<i32>
  %scale = relay.constant dense<0.5> : tensor<f32>
  %y_scale = relay.constant dense<0.25> : tensor<f32>
  %y_zero = relay.constant dense<7> : tensor<ui8>
  %0 = relay.qnn.dense %x, %w, %x_zero, %w_zero : (tensor<2x4xui8>, tensor<1x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<2x1xi32>
  %1 = relay.qnn.requantize %0, %scale, %c0, %y_scale, %y_zero {axis = -1} : (tensor<2x1xi32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> tensor<2x1xui8>
  func.return %1 : tensor<2x1xui8>
}
// CHECK-LABEL: func.func @dense
// CHECK:       %[[PAIRS:.*]] = linalg.generic
// CHECK:       arith.extui {{.*}} : i8 to i16
// CHECK:       arith.subi {{.*}} : i16
// CHECK:       host.kernel "requantize" %[[PAIRS]], {{.*}} -> tensor<2x1xui8>
// CHECK:       llvm.call @byoc_integer_gemm_2_matrix_pairs_2x8_bytes
// CHECK:       llvm.func internal @byoc_integer_gemm_2_matrix_pairs_2x8_bytes

// Weights are bytes in memory: the panel of 2 words by 16 columns, two bytes each.
// WIDENED-LABEL: func.func @dense
// WIDENED:       host.kernel "requantize" %{{.*}}, {{.*}} : (tensor<1x1x2x4xi16>, tensor<64xi8>, {{.*}} -> tensor<2x1xui8>
// WIDENED:       llvm.call @byoc_integer_gemm_2_matrix_widened_2x8_bytes

// Words of bytes that overlap: told are where those of the run begin and how many there are, then
// the place of the only one; weights begin at the next cache line.
// OVER-LABEL: func.func @dense
// OVER-NOT:   linalg.generic
// OVER:       host.kernel "requantize" %{{.*}}, {{.*}} : (tensor<2x4xui8>, tensor<128xi8>, {{.*}} -> tensor<2x1xui8>
// OVER:       llvm.call @byoc_integer_gemm_2_matrix_overlapping_2x8_bytes
// OVER:       llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"

// VNNI-LABEL: func.func @dense
// VNNI-SAME:  (%[[X:.*]]: tensor<2x4xui8>)
// VNNI-NOT:   linalg.generic
// VNNI:       host.kernel "requantize" %{{.*}}, {{.*}} -> tensor<2x1xui8>
// VNNI:       llvm.call @byoc_integer_gemm_2_matrix_bytes_2x16_bytes
// VNNI:       llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"

// -----

// Two tensors that are computed stay.
func.func @matmul(%a: tensor<2x4xi8>, %b: tensor<4x3xi8>, %zero: tensor<i8>) -> tensor<2x3xi32> {
  %0 = relay.qnn.matmul %a, %b, %zero, %zero : (tensor<2x4xi8>, tensor<4x3xi8>, tensor<i8>, tensor<i8>) -> tensor<2x3xi32>
  func.return %0 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @matmul
// CHECK-NEXT:  relay.qnn.matmul
