// RUN: byoc-opt %s -p 'choose-dnnl-algorithms,write-dnnl-calibration{file="%t.json"}' -o %t.mlir && filecheck %s < %t.json
// RUN: not byoc-opt %s -p 'write-dnnl-calibration{file="%t.json/below"}' 2>&1 | filecheck %s --check-prefix REFUSED

// CHECK: "measurements": {
// CHECK: "dnnl/eltwise_forward/{{.*}}": {
// CHECK: "source": "oneDNN 3.{{.*}}"
// CHECK: "unit": "ms"
// CHECK: "value": {{[0-9.e-]+}}
// CHECK: "version": 2
func.func private @r(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {byoc.compiler = "dnnl"} {
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  func.return %0 : tensor<1x16x8x8xf32>
}

// REFUSED: the calibration cannot be written
