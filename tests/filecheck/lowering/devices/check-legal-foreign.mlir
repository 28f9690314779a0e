// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p 'check-legal{stage=buffers}'

func.func @kernel_of_the_host(%d: memref<4xf32, "npu">, %x: memref<4xf32>) {
  // expected-error @unknown {{func.call at loc("relu") runs on the host and is on memory of npu; place-copies copies values to the host}}
  func.call @relu(%x, %d) : (memref<4xf32>, memref<4xf32, "npu">) -> () loc("relu")
  func.return
}
func.func private @relu(memref<4xf32>, memref<4xf32, "npu">) -> () attributes {byoc.kernel}
func.func private @npu_0(memref<4xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}

// -----

func.func @op_of_the_host(%d: memref<4xf32, "npu">, %x: memref<4xf32>) {
  // expected-error @unknown {{memref.copy at loc("relu") runs on the host and is on memory of npu; place-copies copies values to the host}}
  "memref.copy"(%d, %x) : (memref<4xf32, "npu">, memref<4xf32>) -> () loc("relu")
  func.return
}
func.func private @npu_0(memref<4xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}

// -----

func.func @region_of_another_device(%d: memref<4xf32, "npu">) {
  // expected-error @unknown {{func.call at loc("relu") runs on the host and is on memory of npu; place-copies copies values to the host}}
  func.call @gpu_0(%d) : (memref<4xf32, "npu">) -> () loc("relu")
  func.return
}
func.func private @gpu_0(memref<4xf32, "npu">) -> () attributes {byoc.compiler = "gpu", byoc.memory_space = "gpu"}
func.func private @npu_0(memref<4xf32, "npu">) -> () attributes {byoc.compiler = "npu", byoc.memory_space = "npu"}
