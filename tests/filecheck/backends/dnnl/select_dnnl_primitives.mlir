// RUN: byoc-opt %s -p 'select-dnnl-primitives' | filecheck %s

// What the library calls its code depends on the machine.
func.func private @r(%x: tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">> attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = dnnl.eltwise %x {algorithm = "relu"} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  %1 = dnnl.convolution %0, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], algorithm = "f4x3"} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  %2 = dnnl.activation %1 {algorithm = "swish"} : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>) -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  func.return %2 : tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
}
// CHECK:      dnnl.eltwise %x {algorithm = "relu", implementation = "{{[a-z0-9_:]+}}"}
// CHECK-NEXT: dnnl.convolution {{.*}}implementation = "winograd:f4x3", scratchpad_bytes = {{[1-9][0-9]*}}}
// CHECK-NEXT: dnnl.activation {{.*}}implementation = "loop:swish"}
