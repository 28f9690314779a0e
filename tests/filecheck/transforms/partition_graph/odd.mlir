// RUN: byoc-opt --backend %backends --allow-unregistered-dialect %s -p 'partition-for{targets=alpha}' | filecheck %s
// RUN: byoc-opt --backend %backends --allow-unregistered-dialect %s -p 'partition-for{targets=alpha},inline-partitions,prune-regions{min-work=1}' | filecheck %s --check-prefix BACK

// BACK-NOT: byoc.compiler

// Modules inside of modules: symbols are unique in all of them.
// CHECK-LABEL: builtin.module @inner
// CHECK: func.call @alpha_main_0(%x)
// CHECK: func.func private @alpha_main_0
builtin.module @inner {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}

// CHECK: func.func @main
// CHECK-NEXT: func.call @alpha_main_1(%x)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Equal ops stay two ops.
// CHECK-LABEL: func.func @twice
// CHECK-NEXT: [[A:%.*]], [[B:%.*]] = func.call @alpha_twice_0(%x)
// CHECK-NEXT: func.return [[A]], [[B]]
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Nothing at all, and a declaration.
// CHECK-LABEL: func.func @nothing()
// CHECK-NEXT: func.return
func.func @nothing() {
  func.return
}
// CHECK: func.func private @declared(tensor<4xf32>)
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// Sizes that are not known.
// CHECK-LABEL: func.func @dynamic
// CHECK-NEXT: func.call @alpha_dynamic_0(%x) : (tensor<?xf32>) -> tensor<?xf32>
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = relay.nn.relu %x : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

// What is not registered may do anything: it stays where it is.
// CHECK-LABEL: func.func @unknown
// CHECK-NEXT: [[U:%.*]] = "unknown.op"(%x)
// CHECK-NEXT: [[R:%.*]] = func.call @alpha_unknown_0([[U]]) : (tensor<4xf32>)
// CHECK-NEXT: "unknown.op"([[R]])
// CHECK-NEXT: func.return [[R]]
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "unknown.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "unknown.op"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
