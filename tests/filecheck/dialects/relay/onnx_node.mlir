// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

// CHECK-LABEL: func.func @det(
// CHECK-NEXT:    %0 = relay.onnx_node %x {op_type = "Det", opset = 22, node = "CgF4EgF5GgRub2RlIgNEZXQ="} : (tensor<2x3x3xf32>) -> tensor<2xf32>
func.func @det(%x: tensor<2x3x3xf32>) -> tensor<2xf32> {
  %0 = relay.onnx_node %x {op_type = "Det", opset = 22, node = "CgF4EgF5GgRub2RlIgNEZXQ="} : (tensor<2x3x3xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
