// RUN: byoc-opt %s --split-input-file --verify-diagnostics | filecheck %s

func.func @main(%x: tensor<4xf32>) {
  // CHECK: composite name 'relu' must be a backend's name, a dot and a name of its own
  %0 = byoc.composite "relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    byoc.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: yielded value #0 has type tensor<4xf32>, result #0 has type tensor<5xf32>
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<5xf32> {
    byoc.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: the body has 2 yielded values, the composite 1 results
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    byoc.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: argument #0 has type tensor<5xf32>, operand #0 has type tensor<4xf32>
  %0 = "byoc.composite"(%x) <{composite_name = "npu.relu", partitioned_from_pattern = ""}> ({
  ^bb(%a: tensor<5xf32>):
    byoc.yield %a : tensor<5xf32>
  }) : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: the body of a composite ends in byoc.yield
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    llvm.unreachable
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // MC-5: composites do not nest
  // CHECK: the body of a composite holds plain ops, found byoc.composite
  %0 = byoc.composite "npu.outer" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %1 = byoc.composite "npu.inner" from "nn.relu_" (%b = %a : tensor<4xf32>) -> tensor<4xf32> {
      byoc.yield %b : tensor<4xf32>
    }
    byoc.yield %1 : tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: a composite has at least one result
  "byoc.composite"(%x) <{composite_name = "npu.relu", partitioned_from_pattern = ""}> ({
  ^bb(%a: tensor<4xf32>):
    byoc.yield
  }) : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: operand of type tensor<4xf32> and result of type tensor<5xf32> differ
  %0 = "byoc.compiler_begin"(%x) <{compiler = "npu"}> : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // CHECK: the compiler's name is empty
  %0 = byoc.compiler_end %x for "" : tensor<4xf32>
  func.return
}
