// RUN: byoc-opt %s -p outline-device-chains | filecheck %s

// Calls with only addresses between them are one chain; a copy ends it. The other device does not record.
// CHECK:       func.func private @device_npu() {{.*}}byoc.context_slots = 9 : i64
// CHECK-LABEL: func.func @main
// CHECK:         func.call @npu_chain_0(%a, %b, %out) : (memref<4xf32, "npu">, memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
// CHECK-NEXT:    byoc.transfer %x, %a
// CHECK-NEXT:    func.call @npu_chain_1(%a, %out)
// CHECK:         func.call @other_0(%c, %c)
// CHECK-NEXT:    func.return
func.func private @npu_0(memref<4xf32, "npu">, memref<4xf32, "npu">) attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
func.func private @other_0(memref<4xf32, "other">, memref<4xf32, "other">) attributes {byoc.compiler = "other", byoc.memory_space = "other"}
func.func private @device_npu() attributes {byoc.device = "npu", byoc.records, byoc.context_slots = 2 : i64}
func.func private @device_other() attributes {byoc.device = "other", byoc.context_slots = 2 : i64}
func.func @main(%npu: memref<256xi8, "npu">, %other: memref<256xi8, "other">, %x: memref<4xf32>, %out: memref<4xf32, "npu">) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = host.place %npu[%c0] : memref<256xi8, "npu"> to memref<4xf32, "npu">
  func.call @npu_0(%a, %a) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  %b = host.place %npu[%c64] : memref<256xi8, "npu"> to memref<4xf32, "npu">
  func.call @npu_0(%a, %b) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  func.call @npu_0(%b, %out) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  byoc.transfer %x, %a : memref<4xf32>, memref<4xf32, "npu">
  func.call @npu_0(%a, %out) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  %c = host.place %other[%c0] : memref<256xi8, "other"> to memref<4xf32, "other">
  func.call @other_0(%c, %c) : (memref<4xf32, "other">, memref<4xf32, "other">) -> ()
  func.return
}
// CHECK:       func.func private @npu_chain_0(%0: memref<4xf32, "npu">, %1: memref<4xf32, "npu">, %2: memref<4xf32, "npu">) attributes {byoc.arena_bytes = 0 : i64, byoc.chain = {device = "npu", slot = 2 : i64}}
// CHECK-NEXT:    func.call @npu_0(%0, %0)
// CHECK-NEXT:    func.call @npu_0(%0, %1)
// CHECK-NEXT:    func.call @npu_0(%1, %2)
// CHECK-NEXT:    func.return
// CHECK:       func.func private @npu_chain_1({{.*}}slot = 6 : i64}}
