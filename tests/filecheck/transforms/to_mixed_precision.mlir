// RUN: byoc-opt %s --backend %backends --split-input-file -p 'merge-composite{targets=gamma},to-mixed-precision{type=bf16 targets=gamma},fold-constants' | filecheck %s
// RUN: byoc-opt %s --backend %backends --split-input-file -p 'merge-composite{targets=beta},to-mixed-precision{type=bf16 targets=beta}' | filecheck %s --check-prefix NONE

// NONE-NOT: bf16

// Between two products numbers are rounded; the model's input and output are not.
func.func @chain(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = relay.constant dense<0.3> : tensor<2x2x1x1xf32>
  %b = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2x4x4xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %2 = relay.nn.relu %1 : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = relay.nn.max_pool2d %2 {pool_size = [1, 1], strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %4 = relay.nn.conv2d %3, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %4 : tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @chain(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    %[[X:.*]] = relay.cast %x {dtype = bf16}
// CHECK-NEXT:    %[[W:.*]] = relay.constant #relay.weight<{{.*}}> : tensor<2x2x1x1xbf16>
// CHECK-NEXT:    %[[B:.*]] = relay.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = byoc.composite "gamma.conv2d_bias_relu" {{.*}} (%[[P:.*]] = %[[X]] : tensor<1x2x4x4xbf16>, %[[Q:.*]] = %[[W]] : tensor<2x2x1x1xbf16>, %[[R:.*]] = %[[B]] : tensor<2xf32>) -> tensor<1x2x4x4xbf16> {
// CHECK-NEXT:      %[[S:.*]] = relay.nn.conv2d %[[P]], %[[Q]] {{.*}}, out_dtype = f32} : {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT:      %[[T:.*]] = relay.nn.bias_add %[[S]], %[[R]] {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT:      %[[U:.*]] = relay.nn.relu %[[T]]
// CHECK-NEXT:      %[[V:.*]] = relay.cast %[[U]] {dtype = bf16}
// CHECK-NEXT:      byoc.yield %[[V]]
// CHECK:         %[[M:.*]] = relay.nn.max_pool2d %[[C]] {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[Y:.*]] = relay.nn.conv2d %[[M]], %[[W]] {{.*}}, out_dtype = f32} : {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    func.return %[[Y]]

// -----

// What must be exact reads and gives f32: one cast in front of it, one behind it.
func.func @refused(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = relay.nn.softmax %0 {axis = 1} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = relay.nn.conv2d %2, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %4 = relay.add %1, %3 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %4 : tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @refused
// CHECK:         %[[A:.*]] = relay.nn.conv2d {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[F:.*]] = relay.cast %[[A]] {dtype = f32}
// CHECK-NEXT:    %[[B:.*]] = relay.nn.conv2d %[[A]], {{.*}} out_dtype = f32}
// CHECK-NEXT:    %[[S:.*]] = relay.nn.softmax %[[F]] {{.*}} (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.cast %[[S]] {dtype = bf16}
// CHECK-NEXT:    %[[C:.*]] = relay.nn.conv2d %[[R]], {{.*}} out_dtype = f32}
// CHECK-NEXT:    relay.add %[[B]], %[[C]] : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>

// -----

// A sum follows where all its parts are rounded. A result of the model keeps its precision.
func.func @sums(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.conv2d %0, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = relay.add %0, %1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = relay.nn.conv2d %2, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %4 = relay.add %2, %3 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %5 = relay.nn.conv2d %4, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %4, %5 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @sums
// CHECK:         %[[A:.*]] = relay.nn.conv2d {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[B:.*]] = relay.nn.conv2d %[[A]], {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[S:.*]] = relay.add %[[A]], %[[B]] : (tensor<1x2x4x4xbf16>, tensor<1x2x4x4xbf16>) -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[W:.*]] = relay.cast %[[S]] {dtype = f32}
// CHECK-NEXT:    %[[C:.*]] = relay.nn.conv2d %[[S]], {{.*}} out_dtype = f32}
// CHECK-NEXT:    %[[T:.*]] = relay.add %[[W]], %[[C]] : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    %[[R:.*]] = relay.cast %[[T]] {dtype = bf16}
// CHECK-NEXT:    relay.nn.conv2d %[[R]], {{.*}} out_dtype = f32}

// -----

// A composite that follows reads and writes rounded numbers. It is in f32 inside, and so are its
// constants; one that reads what is exact is in f32 altogether.
func.func @norms(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>, %v: tensor<2x4x1x1xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %s = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %t = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.concatenate %0, %0 {axis = 1} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  %2, %3, %4 = relay.nn.batch_norm %1, %s, %s, %s, %s {epsilon = 0.5} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %5 = relay.nn.relu %2 : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %6 = relay.nn.conv2d %5, %v {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x4x4x4xf32>, tensor<2x4x1x1xf32>) -> tensor<1x2x4x4xf32>
  %7, %8, %9 = relay.nn.batch_norm %x, %t, %t, %t, %t {epsilon = 0.5} : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %10 = relay.nn.relu %7 : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %11 = relay.nn.conv2d %10, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %6, %11 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
// CHECK-LABEL: func.func @norms
// CHECK:         %[[A:.*]] = relay.nn.conv2d {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[B:.*]] = relay.concatenate %[[A]], %[[A]] {{.*}} -> tensor<1x4x4x4xbf16>
// CHECK-NEXT:    %[[C:.*]] = byoc.composite "gamma.batch_norm_relu" {{.*}} (%[[D:.*]] = %[[B]] : tensor<1x4x4x4xbf16>, %[[S:.*]] = %s : tensor<4xf32>) -> tensor<1x4x4x4xbf16> {
// CHECK-NEXT:      %[[E:.*]] = relay.cast %[[D]] {dtype = f32}
// CHECK-NEXT:      %[[F:.*]], %{{.*}}, %{{.*}} = relay.nn.batch_norm %[[E]], %[[S]], {{.*}} -> (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:      %[[G:.*]] = relay.nn.relu %[[F]]
// CHECK-NEXT:      %[[H:.*]] = relay.cast %[[G]] {dtype = bf16}
// CHECK-NEXT:      byoc.yield %[[H]]
// CHECK:         relay.nn.conv2d %[[C]], {{.*}} out_dtype = f32}
// CHECK-NEXT:    %[[I:.*]] = byoc.composite "gamma.batch_norm_relu" {{.*}} = %x : tensor<1x2x4x4xf32>, {{.*}} -> tensor<1x2x4x4xf32> {
// CHECK:         %[[J:.*]] = relay.cast %[[I]] {dtype = bf16}
// CHECK-NEXT:    relay.nn.conv2d %[[J]], {{.*}} out_dtype = f32}

// -----

// A product that its backend has a faster algorithm for in f32 stays there, and says why.
// CHECK:       byoc.kept_float = {window = "windows are faster"}
// CHECK-LABEL: func.func @window
// CHECK:         %[[F:.*]] = relay.nn.conv2d {{.*}} : (tensor<1x2x4x4xbf16>, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    %[[G:.*]] = relay.nn.conv2d %[[F]], %v {{.*}} : (tensor<1x2x4x4xf32>, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT:    relay.cast %[[G]] {dtype = bf16}
func.func @window(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>, %v: tensor<2x2x3x3xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.conv2d %0, %v {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x4x4xf32> loc("window")
  %2 = relay.nn.conv2d %1, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %2 : tensor<1x2x4x4xf32>
}

// -----

// The weights of an edge detector cancel: rounding would leave another sum. Those of the other
// convolution do not; neither do weights that are numbers of bf16.
// CHECK:       byoc.kept_float = {edges = "rounded weights would give other sums in 2 of 2 channels"}
// CHECK-LABEL: func.func @cancel
// CHECK:         relay.nn.conv2d {{.*}} : (tensor<1x2x4x4xbf16>, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         relay.nn.conv2d {{.*}} : (tensor<1x2x4x4xf32>, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         relay.nn.conv2d {{.*}} : (tensor<1x2x4x4xbf16>, {{.*}} -> tensor<1x2x4x4xf32>
func.func @cancel(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = relay.constant dense<[[[[1.0]], [[0.7]]], [[[0.3]], [[-1.7]]]]> : tensor<2x2x1x1xf32>
  %v = relay.constant dense<[[[[1.01]], [[-1.0]]], [[[0.7]], [[-0.701]]]]> : tensor<2x2x1x1xf32>
  %u = relay.constant dense<[[[[1.0]], [[-1.0]]], [[[0.5]], [[-0.5]]]]> : tensor<2x2x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.conv2d %0, %v {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("edges")
  %2 = relay.nn.conv2d %1, %u {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %2 : tensor<1x2x4x4xf32>
}

// -----

// What is much smaller than a result is rounded for it: a factor for each channel, which the pool
// of what is rounded already was made for, and a product in f32.
// CHECK-LABEL: func.func @factors
// CHECK:         %[[A:.*]] = relay.nn.conv2d {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    %[[P:.*]] = relay.nn.global_avg_pool2d %[[A]] {{.*}} -> tensor<1x2x1x1xbf16>
// CHECK-NEXT:    %[[F:.*]] = relay.cast %[[P]] {dtype = f32}
// CHECK-NEXT:    %[[E:.*]] = relay.exp %[[F]]
// CHECK-NEXT:    %[[R:.*]] = relay.cast %[[E]] {dtype = bf16}
// CHECK-NEXT:    %[[M:.*]] = relay.multiply %[[A]], %[[R]] {{.*}} -> tensor<1x2x4x4xbf16>
// CHECK-NEXT:    relay.nn.conv2d %[[M]], {{.*}} out_dtype = f32}
func.func @factors(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = relay.nn.global_avg_pool2d %0 : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  %2 = relay.exp %1 : (tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  %3 = relay.multiply %0, %2 : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %4 = relay.nn.conv2d %3, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %4 : tensor<1x2x4x4xf32>
}
