// RUN: byoc-opt %s -p place-waits | filecheck %s

// The host may read what is being copied to the device. It waits before it writes there, before it reads what is being copied from the device, and before it returns.
// CHECK-LABEL: func.func @main
// CHECK:         byoc.transfer %a, %d
// CHECK-NEXT:    func.call @npu_0(%d, %d)
// CHECK-NEXT:    func.call @relu(%a, %b)
// CHECK-NEXT:    byoc.wait "npu"
// CHECK-NEXT:    func.call @relu(%b, %a)
// CHECK-NEXT:    byoc.transfer %d, %b
// CHECK-NEXT:    func.call @relu(%x, %a)
// CHECK-NEXT:    byoc.wait "npu"
// CHECK-NEXT:    func.call @relu(%b, %out)
// CHECK-NEXT:    func.return
func.func @main(%arena: memref<256xi8>, %npu: memref<256xi8, "npu">, %x: memref<4xf32>, %out: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = host.place %arena[%c0] : memref<256xi8> to memref<4xf32>
  %b = host.place %arena[%c64] : memref<256xi8> to memref<4xf32>
  %d = host.place %npu[%c0] : memref<256xi8, "npu"> to memref<4xf32, "npu">
  func.call @relu(%x, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  byoc.transfer %a, %d : memref<4xf32>, memref<4xf32, "npu">
  func.call @npu_0(%d, %d) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
  func.call @relu(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @relu(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  byoc.transfer %d, %b : memref<4xf32, "npu">, memref<4xf32>
  func.call @relu(%x, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @relu(%b, %out) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}

// Results that nobody has read on the host are waited for at the end, each device once.
// CHECK-LABEL: func.func @at_the_end
// CHECK:         byoc.transfer %d, %out
// CHECK-NEXT:    byoc.transfer %x, %g
// CHECK-NEXT:    func.call @gpu_0(%g, %g)
// CHECK-NEXT:    byoc.wait "npu"
// CHECK-NEXT:    byoc.wait "gpu"
// CHECK-NEXT:    func.return
func.func @at_the_end(%d: memref<4xf32, "npu">, %g: memref<4xf32, "gpu">, %x: memref<4xf32>, %out: memref<4xf32>) {
  byoc.transfer %d, %out : memref<4xf32, "npu">, memref<4xf32>
  byoc.transfer %x, %g : memref<4xf32>, memref<4xf32, "gpu">
  func.call @gpu_0(%g, %g) : (memref<4xf32, "gpu">, memref<4xf32, "gpu">) -> ()
  func.return
}

// One queue keeps its order; another device's queue has to wait.
// CHECK-LABEL: func.func @between_devices
// CHECK:         byoc.transfer %d, %h
// CHECK-NEXT:    byoc.transfer %h, %d
// CHECK-NEXT:    byoc.wait "npu"
// CHECK-NEXT:    byoc.transfer %h, %g
// CHECK-NEXT:    byoc.wait "gpu"
// CHECK-NEXT:    func.return
func.func @between_devices(%d: memref<4xf32, "npu">, %g: memref<4xf32, "gpu">, %h: memref<4xf32>) {
  byoc.transfer %d, %h : memref<4xf32, "npu">, memref<4xf32>
  byoc.transfer %h, %d : memref<4xf32>, memref<4xf32, "npu">
  byoc.transfer %h, %g : memref<4xf32>, memref<4xf32, "gpu">
  func.return
}

// A branch may use any of the memory that is passed to it.
// CHECK-LABEL: func.func @before_a_branch
// CHECK:         byoc.transfer %d, %h
// CHECK-NEXT:    byoc.wait "npu"
// CHECK-NEXT:    scf.if
func.func @before_a_branch(%c: i1, %d: memref<4xf32, "npu">, %h: memref<4xf32>) {
  byoc.transfer %d, %h : memref<4xf32, "npu">, memref<4xf32>
  scf.if %c {
    func.call @relu(%h, %h) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  func.return
}

func.func private @relu(%x: memref<4xf32>, %y: memref<4xf32>) attributes {byoc.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%3: f32, %4: f32):
    linalg.yield %3 : f32
  }
  func.return
}
func.func private @npu_0(memref<4xf32, "npu">, memref<4xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
func.func private @gpu_0(memref<4xf32, "gpu">, memref<4xf32, "gpu">) -> () attributes {byoc.compiler = "gpu", byoc.memory_space = "gpu"}
