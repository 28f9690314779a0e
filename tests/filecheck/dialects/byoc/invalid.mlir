// RUN: byoc-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{composite name 'relu' must be a backend's name, a dot and a name of its own}}
  %0 = byoc.composite "relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    byoc.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{yielded value #0 has type tensor<4xf32>, result #0 has type tensor<5xf32>}}
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<5xf32> {
    byoc.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{the body has 2 yielded values, the composite 1 results}}
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    byoc.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{argument #0 has type tensor<5xf32>, operand #0 has type tensor<4xf32>}}
  %0 = "byoc.composite"(%x) <{composite_name = "npu.relu", partitioned_from_pattern = ""}> ({
  ^bb(%a: tensor<5xf32>):
    byoc.yield %a : tensor<5xf32>
  }) : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{the body of a composite ends in byoc.yield}}
  %0 = byoc.composite "npu.relu" from "nn.relu_" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    llvm.unreachable
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // MC-5: composites do not nest
  // expected-error @below {{the body of a composite holds plain ops, found byoc.composite}}
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
  // expected-error @below {{a composite has at least one result}}
  "byoc.composite"(%x) <{composite_name = "npu.relu", partitioned_from_pattern = ""}> ({
  ^bb(%a: tensor<4xf32>):
    byoc.yield
  }) : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{attribute tensor<4xf32> expected from variable 'T', but got tensor<5xf32>}}
  %0 = "byoc.compiler_begin"(%x) <{compiler = "npu"}> : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{the compiler's name is empty}}
  %0 = byoc.compiler_end %x for "" : tensor<4xf32>
  func.return
}
