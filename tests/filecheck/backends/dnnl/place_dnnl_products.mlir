// RUN: byoc-opt %s -p 'place-dnnl-products' | filecheck %s

// A result that is only permuted is written row-major, and copied, or so that it is row-major then.
func.func private @result(%p: tensor<1x12x48x48xf32>, %v: tensor<1x12x48x32xf32>) -> tensor<1x48x12x32xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.matmul %p, %v : (tensor<1x12x48x48xf32>, tensor<1x12x48x32xf32>) -> tensor<1x12x48x32xf32>
  %1 = dnnl.permute %0 {axes = [0, 2, 1, 3]} : (tensor<1x12x48x32xf32>) -> tensor<1x48x12x32xf32, #dnnl.layout<"acbd">>
  %2 = dnnl.reorder %1 : (tensor<1x48x12x32xf32, #dnnl.layout<"acbd">>) -> tensor<1x48x12x32xf32>
  func.return %2 : tensor<1x48x12x32xf32>
}
// CHECK-LABEL: func.func private @result
// CHECK-NEXT:    %[[P:.*]] = dnnl.matmul %p, %v : {{.*}} -> tensor<1x12x48x32xf32{{(, #dnnl.layout<"acbd">)?}}>
// CHECK-NEXT:    %[[Q:.*]] = dnnl.permute %[[P]]
// CHECK:         func.return

// Tensors that nobody permutes stay as they are.
func.func private @plain(%p: tensor<12x48x48xf32>, %v: tensor<12x48x32xf32>) -> tensor<12x48x32xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.matmul %p, %v : (tensor<12x48x48xf32>, tensor<12x48x32xf32>) -> tensor<12x48x32xf32>
  func.return %0 : tensor<12x48x32xf32>
}
// CHECK-LABEL: func.func private @plain
// CHECK-NEXT:    %[[R:.*]] = dnnl.matmul %p, %v : (tensor<12x48x48xf32>, tensor<12x48x32xf32>) -> tensor<12x48x32xf32>
// CHECK-NEXT:    func.return %[[R]]
