// RUN: byoc-opt %s -p 'align-dnnl-results' | filecheck %s

func.func private @returned(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.resampling %x {algorithm = "linear", size = array<i64: 8, 8>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  func.return %0 : tensor<1x8x8x8xf32>
}
// CHECK-LABEL: func.func private @returned
// CHECK-NEXT:    %[[R:.*]] = dnnl.resampling %x
// CHECK-NEXT:    %[[C:.*]] = dnnl.reorder %[[R]] : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
// CHECK-NEXT:    func.return %[[C]]

// A view has the memory of what it shows.
func.func private @view(%x: tensor<1x8x4x4xf32>) -> tensor<8x64xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.resampling %x {algorithm = "nearest", size = array<i64: 8, 8>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  %1 = dnnl.view %0 : (tensor<1x8x8x8xf32>) -> tensor<8x64xf32>
  func.return %1 : tensor<8x64xf32>
}
// CHECK-LABEL: func.func private @view
// CHECK:         %[[V:.*]] = dnnl.view
// CHECK-NEXT:    %[[C:.*]] = dnnl.reorder %[[V]]
// CHECK-NEXT:    func.return %[[C]]

// What is read in the region is in its workspace.
func.func private @inside(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.resampling %x {algorithm = "linear", size = array<i64: 8, 8>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  %1 = dnnl.eltwise %0 {algorithm = "relu"} : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  func.return %1 : tensor<1x8x8x8xf32>
}
// CHECK-LABEL: func.func private @inside
// CHECK-NOT:     dnnl.reorder

// What is joined has the memory of the result.
func.func private @joined(%x: tensor<1x8x4x4xf32>, %y: tensor<1x8x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %y {algorithm = "relu"} : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %1 = dnnl.resampling %x {algorithm = "linear", size = array<i64: 8, 8>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  %2 = dnnl.join %0, %1 {axis = 1} : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x16x8x8xf32>
  func.return %2 : tensor<1x16x8x8xf32>
}
// CHECK-LABEL: func.func private @joined
// CHECK:         %[[J:.*]] = dnnl.join
// CHECK-NEXT:    %[[C:.*]] = dnnl.reorder %[[J]]
// CHECK-NEXT:    func.return %[[C]]
