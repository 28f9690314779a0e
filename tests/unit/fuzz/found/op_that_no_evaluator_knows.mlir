builtin.module {
  func.func @main(%x1: tensor<2xf64> {byoc.name = "x1"}, %x2: tensor<i64> {byoc.name = "x2"}) -> (tensor<f64> {byoc.name = "v3"}) {
    %v3 = relay.onnx_node %x1, %x2, %x1 {op_type = "SoftmaxCrossEntropyLoss", opset = 15, node = "CgJ4MQoCeDIKAngxEgJ2MxoCbjMiF1NvZnRtYXhDcm9zc0VudHJvcHlMb-1NzKhQKCXJlZHVjdGlvbiIEbm9uZaABAzoA"} : (tensor<2xf64>, tensor<i64>, tensor<2xf64>) -> tensor<f64>
    func.return %v3 : tensor<f64>
  }
}