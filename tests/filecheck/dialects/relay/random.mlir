// RUN: byoc-opt %s | byoc-opt --print-op-generic | byoc-opt | filecheck %s

// CHECK-LABEL: func.func @main() -> tensor<4xui32> {
// CHECK-NEXT:    %0 = relay.random_key : () -> tensor<2xui32>
// CHECK-NEXT:    %1 = relay.random_bits %0 {size = 4, stream = 1} : (tensor<2xui32>) -> tensor<4xui32>
func.func @main() -> tensor<4xui32> {
  %0 = relay.random_key : () -> tensor<2xui32>
  %1 = relay.random_bits %0 {size = 4, stream = 1} : (tensor<2xui32>) -> tensor<4xui32>
  func.return %1 : tensor<4xui32>
}

relay.symbol @n {min = 0, hint = 5}

// CHECK-LABEL: func.func @sized
// CHECK-NEXT:    relay.random_bits %{{.*}} {size = #relay.size<2*n>} : (tensor<2xui32>) -> tensor<?xui32, #relay.shape<[2*n]>>
func.func @sized(%key: tensor<2xui32>) -> tensor<?xui32, #relay.shape<[2*n]>> {
  %0 = relay.random_bits %key {size = #relay.size<2*n>} : (tensor<2xui32>) -> tensor<?xui32, #relay.shape<[2*n]>>
  func.return %0 : tensor<?xui32, #relay.shape<[2*n]>>
}
