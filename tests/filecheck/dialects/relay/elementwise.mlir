// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

func.func @add(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.add %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @add(
// CHECK-NEXT:    %2 = relay.add %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @subtract(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.subtract %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @subtract(
// CHECK-NEXT:    %2 = relay.subtract %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @multiply(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.multiply %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @multiply(
// CHECK-NEXT:    %2 = relay.multiply %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @divide(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.divide %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @divide(
// CHECK-NEXT:    %2 = relay.divide %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @power(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.power %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @power(
// CHECK-NEXT:    %2 = relay.power %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @maximum(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.maximum %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @maximum(
// CHECK-NEXT:    %2 = relay.maximum %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @minimum(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.minimum %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @minimum(
// CHECK-NEXT:    %2 = relay.minimum %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @mod(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.mod %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @mod(
// CHECK-NEXT:    %2 = relay.mod %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @floor_mod(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %2 = relay.floor_mod %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @floor_mod(
// CHECK-NEXT:    %2 = relay.floor_mod %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

func.func @logical_and(%0: tensor<2x3xi1>, %1: tensor<3xi1>) -> tensor<2x3xi1> {
  %2 = relay.logical_and %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @logical_and(
// CHECK-NEXT:    %2 = relay.logical_and %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>

func.func @logical_or(%0: tensor<2x3xi1>, %1: tensor<3xi1>) -> tensor<2x3xi1> {
  %2 = relay.logical_or %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @logical_or(
// CHECK-NEXT:    %2 = relay.logical_or %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>

func.func @logical_xor(%0: tensor<2x3xi1>, %1: tensor<3xi1>) -> tensor<2x3xi1> {
  %2 = relay.logical_xor %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @logical_xor(
// CHECK-NEXT:    %2 = relay.logical_xor %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>

func.func @bitwise_and(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %2 = relay.bitwise_and %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @bitwise_and(
// CHECK-NEXT:    %2 = relay.bitwise_and %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>

func.func @bitwise_or(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %2 = relay.bitwise_or %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @bitwise_or(
// CHECK-NEXT:    %2 = relay.bitwise_or %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>

func.func @bitwise_xor(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %2 = relay.bitwise_xor %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @bitwise_xor(
// CHECK-NEXT:    %2 = relay.bitwise_xor %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>

func.func @left_shift(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %2 = relay.left_shift %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @left_shift(
// CHECK-NEXT:    %2 = relay.left_shift %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>

func.func @right_shift(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %2 = relay.right_shift %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @right_shift(
// CHECK-NEXT:    %2 = relay.right_shift %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>

func.func @equal(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @equal(
// CHECK-NEXT:    %2 = relay.equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @not_equal(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.not_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @not_equal(
// CHECK-NEXT:    %2 = relay.not_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @less(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.less %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @less(
// CHECK-NEXT:    %2 = relay.less %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @less_equal(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.less_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @less_equal(
// CHECK-NEXT:    %2 = relay.less_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @greater(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.greater %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @greater(
// CHECK-NEXT:    %2 = relay.greater %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @greater_equal(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %2 = relay.greater_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %2 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @greater_equal(
// CHECK-NEXT:    %2 = relay.greater_equal %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>

func.func @negative(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.negative %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @negative(
// CHECK-NEXT:    %1 = relay.negative %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @abs(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.abs %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @abs(
// CHECK-NEXT:    %1 = relay.abs %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @sign(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.sign %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @sign(
// CHECK-NEXT:    %1 = relay.sign %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @exp(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @exp(
// CHECK-NEXT:    %1 = relay.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @log(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.log %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @log(
// CHECK-NEXT:    %1 = relay.log %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @log1p(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.log1p %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @log1p(
// CHECK-NEXT:    %1 = relay.log1p %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @sqrt(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.sqrt %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @sqrt(
// CHECK-NEXT:    %1 = relay.sqrt %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @rsqrt(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.rsqrt %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @rsqrt(
// CHECK-NEXT:    %1 = relay.rsqrt %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @tanh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.tanh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @tanh(
// CHECK-NEXT:    %1 = relay.tanh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @sigmoid(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.sigmoid %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @sigmoid(
// CHECK-NEXT:    %1 = relay.sigmoid %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @erf(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @erf(
// CHECK-NEXT:    %1 = relay.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @sin(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.sin %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @sin(
// CHECK-NEXT:    %1 = relay.sin %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @cos(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.cos %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @cos(
// CHECK-NEXT:    %1 = relay.cos %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @tan(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.tan %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @tan(
// CHECK-NEXT:    %1 = relay.tan %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @asin(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.asin %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @asin(
// CHECK-NEXT:    %1 = relay.asin %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @acos(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.acos %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @acos(
// CHECK-NEXT:    %1 = relay.acos %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @atan(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.atan %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @atan(
// CHECK-NEXT:    %1 = relay.atan %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @sinh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.sinh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @sinh(
// CHECK-NEXT:    %1 = relay.sinh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @cosh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.cosh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @cosh(
// CHECK-NEXT:    %1 = relay.cosh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @softsign(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.softsign %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @softsign(
// CHECK-NEXT:    %1 = relay.softsign %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @asinh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.asinh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @asinh(
// CHECK-NEXT:    %1 = relay.asinh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @acosh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.acosh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @acosh(
// CHECK-NEXT:    %1 = relay.acosh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @atanh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.atanh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @atanh(
// CHECK-NEXT:    %1 = relay.atanh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @ceil(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.ceil %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @ceil(
// CHECK-NEXT:    %1 = relay.ceil %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @floor(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.floor %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @floor(
// CHECK-NEXT:    %1 = relay.floor %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @round(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.round %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @round(
// CHECK-NEXT:    %1 = relay.round %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @logical_not(%0: tensor<2x3xi1>) -> tensor<2x3xi1> {
  %1 = relay.logical_not %0 : (tensor<2x3xi1>) -> tensor<2x3xi1>
  func.return %1 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @logical_not(
// CHECK-NEXT:    %1 = relay.logical_not %0 : (tensor<2x3xi1>) -> tensor<2x3xi1>

func.func @bitwise_not(%0: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %1 = relay.bitwise_not %0 : (tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return %1 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @bitwise_not(
// CHECK-NEXT:    %1 = relay.bitwise_not %0 : (tensor<2x3xi32>) -> tensor<2x3xi32>

func.func @isnan(%0: tensor<2x3xf32>) -> tensor<2x3xi1> {
  %1 = relay.isnan %0 : (tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return %1 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @isnan(
// CHECK-NEXT:    %1 = relay.isnan %0 : (tensor<2x3xf32>) -> tensor<2x3xi1>

func.func @isinf(%0: tensor<2x3xf32>) -> tensor<2x3xi1> {
  %1 = relay.isinf %0 : (tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return %1 : tensor<2x3xi1>
}
// CHECK-LABEL: func.func @isinf(
// CHECK-NEXT:    %1 = relay.isinf %0 : (tensor<2x3xf32>) -> tensor<2x3xi1>

func.func @clip(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = relay.clip %0 {a_min = -1.5, a_max = 6.0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @clip(
// CHECK-NEXT:    %1 = relay.clip %0 {a_min = -1.5, a_max = 6.0} : (tensor<2x3xf32>) -> tensor<2x3xf32>

func.func @cast(%0: tensor<2x3xf32>) -> tensor<2x3xi64> {
  %1 = relay.cast %0 {dtype = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  func.return %1 : tensor<2x3xi64>
}
// CHECK-LABEL: func.func @cast(
// CHECK-NEXT:    %1 = relay.cast %0 {dtype = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>

func.func @where(%0: tensor<2x1xi1>, %1: tensor<2x3xf32>, %2: tensor<3xf32>) -> tensor<2x3xf32> {
  %3 = relay.where %0, %1, %2 : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %3 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @where(
// CHECK-NEXT:    %3 = relay.where %0, %1, %2 : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
