// RUN: byoc-opt %s -p share-layers | filecheck %s

// Parts between updates of a cache are equal but for their weights, which become arguments.
func.func @main(%x: tensor<1x32xf32>, %k: tensor<1x8x32xf32>, %at: tensor<1xi64>) -> tensor<1x8x32xf32> {
  %0 = relay.negative %x : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %1 = relay.tanh %0 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %2 = relay.negative %1 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %3 = relay.tanh %2 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %4 = relay.negative %3 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %5 = relay.tanh %4 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %6 = relay.negative %5 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %7 = relay.tanh %6 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %8 = relay.negative %7 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %9 = relay.tanh %8 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %10 = relay.negative %9 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %11 = relay.tanh %10 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %12 = relay.negative %11 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %13 = relay.tanh %12 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %14 = relay.negative %13 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %w0 = relay.constant #relay.weight<"w0", "00"> : tensor<1x32xf32>
  %15 = relay.multiply %14, %w0 : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %16 = relay.reshape %15 {newshape = #relay.shape<[1, 1, 32]>} : (tensor<1x32xf32>) -> tensor<1x1x32xf32>
  %17 = relay.update_slice %k, %16, %at {axis = 1} : (tensor<1x8x32xf32>, tensor<1x1x32xf32>, tensor<1xi64>) -> tensor<1x8x32xf32>
  %18 = relay.negative %15 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %19 = relay.tanh %18 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %20 = relay.negative %19 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %21 = relay.tanh %20 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %22 = relay.negative %21 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %23 = relay.tanh %22 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %24 = relay.negative %23 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %25 = relay.tanh %24 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %26 = relay.negative %25 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %27 = relay.tanh %26 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %28 = relay.negative %27 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %29 = relay.tanh %28 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %30 = relay.negative %29 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %31 = relay.tanh %30 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %32 = relay.negative %31 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %w1 = relay.constant #relay.weight<"w1", "11"> : tensor<1x32xf32>
  %33 = relay.multiply %32, %w1 : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %34 = relay.reshape %33 {newshape = #relay.shape<[1, 1, 32]>} : (tensor<1x32xf32>) -> tensor<1x1x32xf32>
  %35 = relay.update_slice %17, %34, %at {axis = 1} : (tensor<1x8x32xf32>, tensor<1x1x32xf32>, tensor<1xi64>) -> tensor<1x8x32xf32>
  %36 = relay.negative %33 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %37 = relay.tanh %36 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %38 = relay.negative %37 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %39 = relay.tanh %38 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %40 = relay.negative %39 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %41 = relay.tanh %40 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %42 = relay.negative %41 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %43 = relay.tanh %42 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %44 = relay.negative %43 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %45 = relay.tanh %44 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %46 = relay.negative %45 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %47 = relay.tanh %46 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %48 = relay.negative %47 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %49 = relay.tanh %48 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %50 = relay.negative %49 : (tensor<1x32xf32>) -> tensor<1x32xf32>
  %w2 = relay.constant #relay.weight<"w2", "22"> : tensor<1x32xf32>
  %51 = relay.add %50, %w2 : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %52 = relay.reshape %51 {newshape = #relay.shape<[1, 1, 32]>} : (tensor<1x32xf32>) -> tensor<1x1x32xf32>
  %53 = relay.update_slice %35, %52, %at {axis = 1} : (tensor<1x8x32xf32>, tensor<1x1x32xf32>, tensor<1xi64>) -> tensor<1x8x32xf32>
  func.return %53 : tensor<1x8x32xf32>
}
// CHECK-LABEL: func.func @main(
// CHECK:         %w0 = relay.constant
// CHECK-NEXT:    %0, %1 = relay.call %x, %w0 {body = @layer_0}
// CHECK-NEXT:    %2 = relay.update_slice %k, %1, %at
// CHECK-NEXT:    %w1 = relay.constant
// CHECK-NEXT:    %3, %4 = relay.call %0, %w1 {body = @layer_0}
// CHECK-NEXT:    %5 = relay.update_slice %2, %4, %at
// CHECK-NOT:     relay.call
// CHECK:       func.func private @layer_0(%0: tensor<1x32xf32>, %1: tensor<1x32xf32>) -> (tensor<1x32xf32>, tensor<1x1x32xf32>) {
