// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @both_on_the_host(%x: tensor<4xf32>) {
  // expected-error @below {{a copy is between the host and a device, found 'host' and 'host'}}
  %0 = byoc.copy %x from "host" to "host" : tensor<4xf32>
  func.return
}

// -----

func.func @between_devices(%x: tensor<4xf32>) {
  // expected-error @below {{a copy is between the host and a device, found 'npu' and 'gpu'}}
  %0 = byoc.copy %x from "npu" to "gpu" : tensor<4xf32>
  func.return
}

// -----

func.func @buffers_of_the_host(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{a transfer is between the host and a device, found 'host' and 'host'}}
  byoc.transfer %x, %y : memref<4xf32>, memref<4xf32>
  func.return
}

// -----

func.func @buffers_of_devices(%x: memref<4xf32, "npu">, %y: memref<4xf32, "gpu">) {
  // expected-error @below {{a transfer is between the host and a device, found 'npu' and 'gpu'}}
  byoc.transfer %x, %y : memref<4xf32, "npu">, memref<4xf32, "gpu">
  func.return
}

// -----

func.func @other_type(%x: tensor<4xf32>) {
  // expected-error @below {{result 'result' at position 0 does not verify}}
  %0 = "byoc.copy"(%x) <{source = "host", target = "npu"}> : (tensor<4xf32>) -> f32
  func.return
}
