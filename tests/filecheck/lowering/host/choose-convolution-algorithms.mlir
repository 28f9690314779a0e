// RUN: byoc-opt %s -p 'choose-convolution-algorithms{algorithm=f4x3}' | filecheck %s
// RUN: byoc-opt %s -p 'choose-convolution-algorithms' | filecheck %s --check-prefix FASTEST
// RUN: byoc-opt %s -p 'choose-convolution-algorithms{calibration="%S/Inputs/tuned.json"}' | filecheck %s --check-prefix TUNED
// RUN: byoc-opt %s -p 'choose-convolution-algorithms{calibration="%S/Inputs/slow-memory.json"}' | filecheck %s --check-prefix CALIBRATION

// CHECK-LABEL: func.func @convolutions
// FASTEST-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<1x128x56x56xf32>) -> (tensor<1x128x56x56xf32>, tensor<1x128x56x56xf32>, tensor<1x2x56x56xf32>) {
  %w = relay.constant dense<0.5> : tensor<128x128x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<128x128x3x3xf32>) -> tensor<1x128x56x56xf32>
  // CHECK: relay.nn.conv2d {{.*}} algorithm = "f4x3"}
  // FASTEST: relay.nn.conv2d {{.*}} algorithm = "f{{[46]}}x3"}
  // TUNED: relay.nn.conv2d {{.*}} padding = [1, 1, 1, 1]{{.*}} algorithm = "implicit_gemm"}

  // Not written for windows of one pixel.
  %one = relay.constant dense<0.5> : tensor<128x128x1x1xf32>
  %1 = relay.nn.conv2d %x, %one {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<128x128x1x1xf32>) -> tensor<1x128x56x56xf32>
  // CHECK-NEXT: relay.constant
  // CHECK-NEXT: relay.nn.conv2d
  // CHECK-NOT:  algorithm
  // FASTEST:    relay.nn.conv2d {{.*}} algorithm = "implicit_gemm"}

  // Two channels make no vector.
  %two = relay.constant dense<0.5> : tensor<2x128x1x1xf32>
  %2 = relay.nn.conv2d %x, %two {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<2x128x1x1xf32>) -> tensor<1x2x56x56xf32>
  // FASTEST:     relay.nn.conv2d
  // FASTEST-NOT: algorithm
  func.return %0, %1, %2 : tensor<1x128x56x56xf32>, tensor<1x128x56x56xf32>, tensor<1x2x56x56xf32>
}

// Few pixels: loops read the weights from memory, too.
// CHECK-LABEL:   func.func @pixels
// FASTEST-LABEL: func.func @pixels
func.func @pixels(%x: tensor<1x512x3x4xf32>) -> tensor<1x512x3x4xf32> {
  %w = relay.constant dense<0.5> : tensor<512x512x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x512x3x4xf32>, tensor<512x512x3x3xf32>) -> tensor<1x512x3x4xf32>
  // FASTEST: relay.nn.conv2d {{.*}} algorithm =
  func.return %0 : tensor<1x512x3x4xf32>
}

// Of one channel each, alone: only what was measured says that the layout pays.
// FASTEST-LABEL: func.func @depthwise
// TUNED-LABEL:   func.func @depthwise
func.func @depthwise(%x: tensor<1x32x9x9xf32>) -> tensor<1x32x9x9xf32> {
  %w = relay.constant dense<0.5> : tensor<32x1x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 32} : (tensor<1x32x9x9xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x9x9xf32>
  // FASTEST:     relay.nn.conv2d
  // FASTEST-NOT: algorithm
  // FASTEST:     func.return
  // TUNED:       relay.nn.conv2d {{.*}} algorithm = "depthwise", schedule = "constants"}
  func.return %0 : tensor<1x32x9x9xf32>
}

// Other panels, where tuning found them to be faster.
// FASTEST-LABEL: func.func @panels
// TUNED-LABEL:   func.func @panels
func.func @panels(%x: tensor<1x16x8x8xf32>) -> tensor<1x192x8x8xf32> {
  %w = relay.constant dense<0.5> : tensor<192x16x1x1xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x16x8x8xf32>, tensor<192x16x1x1xf32>) -> tensor<1x192x8x8xf32>
  // FASTEST-NOT: schedule
  // FASTEST:     func.return
  // TUNED:       relay.nn.conv2d {{.*}} algorithm = "implicit_gemm", schedule = "panels=3"
  func.return %0 : tensor<1x192x8x8xf32>
}

// Weights that may grow by little only are not transformed, unless that is asked for.
// CHECK-LABEL:   func.func @small_weights
// FASTEST-LABEL: func.func @small_weights
// TUNED-LABEL:   func.func @small_weights
func.func @small_weights(%x: tensor<1x128x56x56xf32>) -> tensor<1x128x56x56xf32> attributes {byoc.weight_growth = 1.5 : f64} {
  %w = relay.constant dense<0.5> : tensor<128x128x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<128x128x3x3xf32>) -> tensor<1x128x56x56xf32>
  // FASTEST: relay.nn.conv2d {{.*}} algorithm = "implicit_gemm"}
  func.return %0 : tensor<1x128x56x56xf32>
}

// Of one channel each, between kernels: the layout is theirs.
// FASTEST-LABEL: func.func @between_kernels
func.func @between_kernels(%x: tensor<1x32x28x28xf32>) -> tensor<1x64x28x28xf32> {
  %one = relay.constant dense<0.5> : tensor<64x32x1x1xf32>
  %w = relay.constant dense<0.5> : tensor<64x1x3x3xf32>
  %0 = relay.nn.conv2d %x, %one {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x28x28xf32>
  %1 = relay.sigmoid %0 : (tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %2 = relay.multiply %1, %0 : (tensor<1x64x28x28xf32>, tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %3 = relay.nn.conv2d %2, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 64} : (tensor<1x64x28x28xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x28x28xf32>
  // FASTEST: relay.nn.conv2d {{.*}} algorithm = "implicit_gemm"}
  // FASTEST: relay.nn.conv2d {{.*}} algorithm = "depthwise"}
  func.return %3 : tensor<1x64x28x28xf32>
}

// Loops would be as fast, but turn what kernels before and behind them have with channels last.
// FASTEST-LABEL: func.func @turned_for_kernels
func.func @turned_for_kernels(%x: tensor<1x96x28x28xf32>) -> tensor<1x96x28x28xf32> {
  %narrow = relay.constant dense<0.5> : tensor<24x96x1x1xf32>
  %wide = relay.constant dense<0.5> : tensor<96x24x1x1xf32>
  %square = relay.constant dense<0.5> : tensor<96x96x1x1xf32>
  %0 = relay.nn.conv2d %x, %square {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x96x28x28xf32>, tensor<96x96x1x1xf32>) -> tensor<1x96x28x28xf32>
  %1 = relay.nn.conv2d %0, %narrow {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x96x28x28xf32>, tensor<24x96x1x1xf32>) -> tensor<1x24x28x28xf32>
  %2 = relay.nn.conv2d %1, %wide {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x24x28x28xf32>, tensor<96x24x1x1xf32>) -> tensor<1x96x28x28xf32>
  // FASTEST-COUNT-3: relay.nn.conv2d {{.*}} algorithm = "implicit_gemm"}
  func.return %2 : tensor<1x96x28x28xf32>
}

// What was measured to be the fastest has to fit into the memory, too.
// TUNED-LABEL: func.func @too_large
func.func @too_large(%x: tensor<1x128x28x28xf32>) -> tensor<1x128x28x28xf32> attributes {byoc.weight_growth = 2.0 : f64} {
  %w = relay.constant dense<0.5> : tensor<128x128x3x3xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]} : (tensor<1x128x28x28xf32>, tensor<128x128x3x3xf32>) -> tensor<1x128x28x28xf32>
  // TUNED: relay.nn.conv2d {{.*}} algorithm = "{{f2x3|implicit_gemm}}"}
  func.return %0 : tensor<1x128x28x28xf32>
}

// Few outputs between two kernels: by loops, what is between would be transposed twice.
// CALIBRATION-LABEL: func.func @between
func.func @between(%x: tensor<1x128x56x56xf32>) -> tensor<1x128x56x56xf32> {
  %first = relay.constant dense<0.5> : tensor<128x128x1x1xf32>
  %0 = relay.nn.conv2d %x, %first {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<128x128x1x1xf32>) -> tensor<1x128x56x56xf32>
  %few = relay.constant dense<0.5> : tensor<24x128x1x1xf32>
  %1 = relay.nn.conv2d %0, %few {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x128x56x56xf32>, tensor<24x128x1x1xf32>) -> tensor<1x24x56x56xf32>
  // CALIBRATION: relay.nn.conv2d {{.*}} algorithm = "implicit_gemm"{{.*}} tensor<1x24x56x56xf32>
  %last = relay.constant dense<0.5> : tensor<128x24x1x1xf32>
  %2 = relay.nn.conv2d %1, %last {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]} : (tensor<1x24x56x56xf32>, tensor<128x24x1x1xf32>) -> tensor<1x128x56x56xf32>
  func.return %2 : tensor<1x128x56x56xf32>
}
