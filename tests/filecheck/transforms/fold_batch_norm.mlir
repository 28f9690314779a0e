// RUN: byoc-opt %s --split-input-file -p fold-batch-norm | filecheck %s

func.func @conv(%x: tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xf32> {
  %w = relay.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %gamma = relay.constant dense<[4.0, 6.0]> : tensor<2xf32>
  %beta = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %mean = relay.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %var = relay.constant dense<[3.0, 8.0]> : tensor<2xf32>
  %1, %2, %3 = relay.nn.batch_norm %0, %gamma, %beta, %mean, %var {epsilon = 1.0} : (tensor<1x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<1x2x2x2xf32>
}
// CHECK-LABEL: func.func @conv
// CHECK-NEXT:    %[[W:.*]] = relay.constant dense<{{\[\[\[\[}}2.000000e+00]]], {{\[\[\[}}4.000000e+00]]]]>
// CHECK-NEXT:    %[[Y:.*]] = relay.nn.conv2d %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = relay.constant dense<[-1.000000e+00, -4.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    relay.nn.bias_add %[[Y]], %[[B]]
// CHECK-NEXT:    func.return

// -----

// a bias between the two, the scale and the shift of a dense layer
func.func @dense(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = relay.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %t = relay.constant dense<[[5.0, 6.0]]> : tensor<1x2xf32>
  %0 = relay.nn.dense %x, %w : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %2 = relay.multiply %1, %s : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %3 = relay.add %t, %2 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %3 : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @dense
// CHECK:         relay.constant dense<{{\[\[}}2.000000e+00, 4.000000e+00], [9.000000e+00, 1.200000e+01]]>
// CHECK-NEXT:    relay.nn.dense
// CHECK:         relay.constant dense<[7.000000e+00, 1.200000e+01]> : tensor<2xf32>
// CHECK:         relay.nn.bias_add %{{.*}}, %{{.*}} :
// CHECK-NEXT:    func.return

// -----

// the convolution's result is used twice
func.func @used_twice(%x: tensor<1x1x2x2xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  %w = relay.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %c = relay.constant dense<[4.0, 6.0]> : tensor<2xf32>
  %1, %2, %3 = relay.nn.batch_norm %0, %c, %c, %c, %c : (tensor<1x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %0, %1 : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}
// CHECK-LABEL: func.func @used_twice
// CHECK:         relay.nn.batch_norm

// -----

// the scale is infinite: (x - 1) / sqrt(0)
func.func @no_variance(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %w = relay.constant dense<[[[[1.0]]]]> : tensor<1x1x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %one = relay.constant dense<[1.0]> : tensor<1xf32>
  %zero = relay.constant dense<[0.0]> : tensor<1xf32>
  %1, %2, %3 = relay.nn.batch_norm %0, %one, %one, %one, %zero {epsilon = 0.0} : (tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1xf32>)
  func.return %1 : tensor<1x1x2x2xf32>
}
// CHECK-LABEL: func.func @no_variance
// CHECK:         relay.nn.batch_norm

// -----

// scale and shift after a batch norm that cannot go into anything
func.func @scale_after_batch_norm(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %c = relay.constant dense<[4.0, 6.0]> : tensor<2xf32>
  %s = relay.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %1, %2, %3 = relay.nn.batch_norm %x, %c, %c, %c, %c : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %4 = relay.multiply %1, %s : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %5 = relay.subtract %4, %s : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  func.return %5 : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @scale_after_batch_norm
// CHECK-DAG:     %[[GAMMA:.*]] = relay.constant dense<[8.000000e+00, 1.800000e+01]>
// CHECK-DAG:     %[[BETA:.*]] = relay.constant dense<[6.000000e+00, 1.500000e+01]>
// CHECK:         relay.nn.batch_norm %x, %[[GAMMA]], %[[BETA]]
// CHECK-NEXT:    func.return

// -----

// one number per row is not one per channel
func.func @per_row(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = relay.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %0 = relay.nn.dense %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = relay.multiply %0, %s : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  func.return %1 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func @per_row
// CHECK:         relay.multiply
