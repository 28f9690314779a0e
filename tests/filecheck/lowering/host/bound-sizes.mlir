// RUN: byoc-opt %s -p convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers | filecheck %s --check-prefix BUFFERS
// RUN: byoc-opt %s -p "convert-relay-to-linalg,bufferize,outline-kernels,plan-buffers,convert-linalg-to-loops{threads=false},bind-sizes" | filecheck %s

// A function computes with a size that it is given as a number. Its memory is enough for the largest one, so that of @main has a known size.

// BUFFERS:       func.func @main(%arena: memref<192xi8>, %count: memref<i64>, %x: memref<32xf32>
// BUFFERS:         func.call @part(%{{.*}}, %count, %x, %out)
// BUFFERS:       func.func private @part(%arena: memref<192xi8>, %count: memref<i64>, %x: memref<32xf32>
// BUFFERS:         host.place %arena[%{{.*}}] : memref<192xi8> to memref<?xf32, #host.layout<#relay.shape<[4*n]>

// The number is read where the function begins; @main takes no sizes.

// CHECK-NOT:     relay.symbol
// CHECK:         func.func @main(%arena: memref<192xi8>, %count: memref<i64>, %x: memref<32xf32>
// CHECK-NOT:       memref.load
// CHECK:           func.call @part(%{{.*}}, %count, %x, %out) : (memref<192xi8>, memref<i64>, memref<32xf32>, memref<32xf32>) -> ()
// CHECK:         func.func private @part(%arena: memref<192xi8>, %count: memref<i64>, %x: memref<32xf32>
// CHECK-SAME:    passthrough = ["noimplicitfloat"]
// CHECK:           %[[LOADED:.*]] = memref.load %count[] : memref<i64>
// CHECK:           arith.index_cast %[[LOADED]] : i64 to index
// CHECK:           func.call @exp_0(%x, %{{.*}}, %[[SIZE:.*]]) : ({{.*}}, index) -> ()
// CHECK:         func.func private @exp_0({{.*}}, %{{.*}}: index)
// CHECK-NOT:       host.size

relay.symbol @n {min = 1, max = 8, hint = 4}
func.func @main(%count: tensor<i64>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %0 = relay.bind %count, %x {body = @part} : (tensor<i64>, tensor<32xf32>) -> tensor<32xf32>
  func.return %0 : tensor<32xf32>
}
func.func private @part(%count: tensor<i64>, %x: tensor<32xf32>) -> tensor<32xf32> attributes {byoc.binds = "n"} {
  %0 = relay.strided_slice %x {begin = [0], end = #relay.shape<[4*n]>, strides = [1]} : (tensor<32xf32>) -> tensor<?xf32, #relay.shape<[4*n]>>
  %1 = relay.exp %0 : (tensor<?xf32, #relay.shape<[4*n]>>) -> tensor<?xf32, #relay.shape<[4*n]>>
  %2 = relay.sum %1 {axis = [0], keepdims = true} : (tensor<?xf32, #relay.shape<[4*n]>>) -> tensor<1xf32>
  %3 = relay.add %2, %x : (tensor<1xf32>, tensor<32xf32>) -> tensor<32xf32>
  func.return %3 : tensor<32xf32>
}
