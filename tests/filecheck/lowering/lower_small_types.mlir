// RUN: byoc-opt %s --split-input-file -p lower-small-types | filecheck %s

func.func @decode(%x: tensor<8xf8E5M2>) -> tensor<8xf32> {
  %0 = relay.reshape %x {newshape = [8]} : (tensor<8xf8E5M2>) -> tensor<8xf8E5M2>
  %1 = relay.cast %0 {dtype = f32} : (tensor<8xf8E5M2>) -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func @decode(%x: tensor<8xui8>)
// CHECK-NEXT:    %[[MOVED:.*]] = relay.reshape %x {newshape = [8]} : (tensor<8xui8>) -> tensor<8xui8>
// CHECK-NEXT:    %[[TABLE:.*]] = relay.constant #relay.weight<"table", "{{.*}}"> : tensor<256xf32>
// CHECK-NEXT:    %[[PLACES:.*]] = relay.cast %[[MOVED]] {dtype = i32}
// CHECK-NEXT:    relay.take %[[TABLE]], %[[PLACES]] : (tensor<256xf32>, tensor<8xi32>) -> tensor<8xf32>

// -----

func.func @encode_integer(%x: tensor<8xi32>) -> tensor<8xi4> {
  %0 = relay.cast %x {dtype = i4} : (tensor<8xi32>) -> tensor<8xi4>
  func.return %0 : tensor<8xi4>
}
// CHECK-LABEL: func.func @encode_integer(%x: tensor<8xi32>) -> tensor<8xui8>
// CHECK-NEXT:    %[[CUT:.*]] = relay.cast %x {dtype = ui8}
// CHECK-NEXT:    %[[MASK:.*]] = relay.constant dense<15> : tensor<ui8>
// CHECK-NEXT:    relay.bitwise_and %[[CUT]], %[[MASK]]

// -----

// nothing to do
func.func @others(%x: tensor<8xui8>) -> tensor<8xui8> {
  %0 = relay.add %x, %x : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xui8>
  func.return %0 : tensor<8xui8>
}
// CHECK-LABEL: func.func @others(%x: tensor<8xui8>) -> tensor<8xui8>
// CHECK-NEXT:    relay.add %x, %x
// CHECK-NEXT:    func.return
