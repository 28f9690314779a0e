// RUN: byoc-opt %s --split-input-file -p bufferize | filecheck %s
// RUN: byoc-opt %s --split-input-file -p bufferize,plan-buffers --verify-diagnostics | filecheck %s --check-prefix PLAN
// RUN: byoc-opt %s --split-input-file -p bufferize,plan-buffers,add-entry-points --verify-diagnostics | filecheck %s --check-prefix ENTRY

// One branch is called; both write where the result is. The memory of a branch is a part of its caller's, the same for both.
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.if %c, %x {then_branch = @one, else_branch = @other} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @npu_one_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @npu_other_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @npu_other_1(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @npu_one_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu", byoc.workspace = 64 : i64}
func.func private @npu_other_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu", byoc.workspace = 128 : i64}
func.func private @npu_other_1(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"}

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %out: memref<4xf32>
// CHECK-NEXT:    [[C:%.*]] = memref.load %c[] : memref<i1>
// CHECK-NEXT:    scf.if [[C]] {
// CHECK-NEXT:      func.call @one(%x, %out)
// CHECK-NEXT:    } else {
// CHECK-NEXT:      func.call @other(%x, %out)
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// PLAN-LABEL: func.func @main(%arena: memref<192xi8>
// PLAN:         host.place %arena{{.*}} : memref<192xi8> to memref<64xi8>
// PLAN-NEXT:    func.call @one(
// PLAN:         host.place %arena{{.*}} : memref<192xi8> to memref<192xi8>
// PLAN-NEXT:    func.call @other(
// PLAN-LABEL: func.func private @one(
// PLAN-SAME:    byoc.arena_bytes = 64 : i64
// PLAN-LABEL: func.func private @other(
// PLAN-SAME:    byoc.arena_bytes = 192 : i64
// PLAN-LABEL: func.func private @npu_one_0(
// PLAN-SAME:    byoc.workspace_offset = 0 : i64

// A failure of a region leaves the branch, and the model.
// ENTRY-LABEL: func.func private @main(%state: !llvm.ptr, %context: !llvm.ptr, %arena: memref<192xi8>
// ENTRY:         cf.cond_br {{%.*}}, ^[[THEN:bb[0-9]+]], ^[[ELSE:bb[0-9]+]]
// ENTRY:       ^[[THEN]]:
// ENTRY:         [[STATUS:%.*]] = func.call @one(%state, %context,
// ENTRY:         cf.cond_br {{%.*}}, ^[[FAIL:bb[0-9]+]]({{%.*}} : i64), ^{{bb[0-9]+}}
// ENTRY:       ^[[ELSE]]:
// ENTRY:         func.call @other(%state, %context,
// ENTRY:         cf.cond_br {{%.*}}, ^[[FAIL]](
// ENTRY:       ^[[FAIL]]([[CODE:%.*]]: i64):
// ENTRY-NEXT:    func.return [[CODE]] : i64
// ENTRY-LABEL: func.func private @other(%state: !llvm.ptr, %context: !llvm.ptr, %arena: memref<192xi8>
// ENTRY:         func.call @npu_other_0(
// ENTRY:         arith.constant 8589934592 : i64
// ENTRY:         cf.cond_br

// -----

// Two buffers change places. With an odd number of iterations the first state is not in the result's. Rows are copied to their place.
func.func @main(%s: tensor<4xf32>, %x: tensor<2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>) {
  %0, %1 = relay.for %s, %x {body = @step, count = 3, carried = 1} : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<3x2xf32>
}
func.func private @step(%i: tensor<i64>, %s: tensor<4xf32>, %x: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %0, %1 = func.call @npu_step_0(%s, %x) : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<2xf32>
}
func.func private @npu_step_0(tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) attributes {byoc.compiler = "npu"}

// CHECK-LABEL: func.func @main(%s: memref<4xf32>, %x: memref<2xf32>, %out: memref<4xf32>, %out_1: memref<3x2xf32>)
// CHECK:         [[NUMBER:%[0-9]+]] = memref.alloc() {{.*}}: memref<i64>
// CHECK:         [[BESIDE:%[0-9]+]] = memref.alloc() {{.*}}: memref<4xf32>
// CHECK:         [[ROW:%[0-9]+]] = memref.alloc() {{.*}}: memref<2xf32>
// CHECK:         "memref.copy"(%s, [[BESIDE]])
// CHECK:         scf.for [[I:%[0-9]+]] = {{.*}} iter_args([[ONE:%[0-9]+]] = [[BESIDE]], [[OTHER:%[0-9]+]] = %out)
// CHECK-NEXT:      [[I64:%[0-9]+]] = arith.index_cast [[I]] : index to i64
// CHECK-NEXT:      memref.store [[I64]], [[NUMBER]][]
// CHECK-NEXT:      func.call @step([[NUMBER]], [[ONE]], %x, [[OTHER]], [[ROW]])
// CHECK:           [[FIRST:%[0-9]+]] = arith.muli [[I]], {{%[0-9]+}} : index
// CHECK-NEXT:      [[FROM:%[0-9]+]] = host.view [[ROW]] : memref<2xf32> to memref<2xf32>
// CHECK-NEXT:      [[TO:%[0-9]+]] = host.view %out_1 : memref<3x2xf32> to memref<6xf32>
// CHECK:           scf.for [[J:%[0-9]+]]
// CHECK-NEXT:        [[ELEMENT:%[0-9]+]] = memref.load [[FROM]][[[J]]]
// CHECK-NEXT:        [[PLACE:%[0-9]+]] = arith.addi [[FIRST]], [[J]] : index
// CHECK-NEXT:        memref.store [[ELEMENT]], [[TO]][[[PLACE]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield [[OTHER]], [[ONE]]
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// -----

// With an even number it is.
func.func @main(%s: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.for %s {body = @step, count = 2, carried = 1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @step(%i: tensor<i64>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @npu_step_0(%s) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @npu_step_0(tensor<4xf32>) -> tensor<4xf32> attributes {byoc.compiler = "npu"}

// CHECK-LABEL: func.func @main(
// CHECK:         "memref.copy"(%s, %out)
// CHECK:         iter_args({{%[0-9]+}} = %out, {{%[0-9]+}} = {{%[0-9]+}})

// -----

// The body tells whether there is another iteration. What the loop gives is in either buffer, so both live until it is copied.
func.func @main(%limit: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.while %limit, %go, %s {body = @attempt, carried = 1} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @attempt(%i: tensor<i64>, %s: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %0, %1 = func.call @npu_attempt_0(%s) : (tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  func.return %0, %1 : tensor<i1>, tensor<4xf32>
}
func.func private @npu_attempt_0(tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) attributes {byoc.compiler = "npu"}

// CHECK-LABEL: func.func @main(
// CHECK:         [[BESIDE:%[0-9]+]] = memref.alloc() {{.*}}: memref<4xf32>
// CHECK:         [[GOING:%[0-9]+]] = memref.alloc() {{.*}}: memref<i1>
// CHECK:         "memref.copy"(%s, %out)
// CHECK-NEXT:    "memref.copy"(%go, [[GOING]])
// CHECK-NEXT:    [[LIMIT:%[0-9]+]] = memref.load %limit[]
// CHECK:         {{%[0-9]+}}, [[LAST:%[0-9]+]], {{%[0-9]+}} = scf.while ([[I:%[0-9]+]] = {{%[0-9]+}}, [[ONE:%[0-9]+]] = %out, [[OTHER:%[0-9]+]] = [[BESIDE]])
// CHECK-NEXT:      [[ON:%[0-9]+]] = memref.load [[GOING]][]
// CHECK-NEXT:      [[BELOW:%[0-9]+]] = arith.cmpi slt, [[I]], [[LIMIT]] : i64
// CHECK-NEXT:      [[BOTH:%[0-9]+]] = arith.andi [[ON]], [[BELOW]] : i1
// CHECK-NEXT:      scf.condition([[BOTH]]) [[I]], [[ONE]], [[OTHER]]
// CHECK:         ^bb0([[J:%[0-9]+]]: i64, [[STATE:%[0-9]+]]: memref<4xf32>, [[NEXT:%[0-9]+]]: memref<4xf32>):
// CHECK:           func.call @attempt({{%[0-9]+}}, [[STATE]], [[GOING]], [[NEXT]])
// CHECK:           scf.yield {{%[0-9]+}}, [[NEXT]], [[STATE]]
// CHECK:         "memref.copy"([[LAST]], %out)

// -----

// Rows go to their place; there are no more iterations than rows.
func.func @main(%limit: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>) -> tensor<6x4xf32> {
  %0 = relay.while %limit, %go, %s {body = @attempt, carried = 0} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<6x4xf32>
  func.return %0 : tensor<6x4xf32>
}
func.func private @attempt(%i: tensor<i64>, %s: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %0, %1 = func.call @npu_attempt_0(%s) : (tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  func.return %0, %1 : tensor<i1>, tensor<4xf32>
}
func.func private @npu_attempt_0(tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) attributes {byoc.compiler = "npu"}

// CHECK-LABEL: func.func @main(
// CHECK:         [[ROW:%[0-9]+]] = memref.alloc() {{.*}}: memref<4xf32>
// CHECK:         [[LIMIT:%[0-9]+]] = memref.load %limit[]
// CHECK-NEXT:    [[ROWS:%[0-9]+]] = arith.constant 6 : i64
// CHECK-NEXT:    [[MOST:%[0-9]+]] = arith.minsi [[LIMIT]], [[ROWS]] : i64
// CHECK:         arith.cmpi slt, {{%[0-9]+}}, [[MOST]] : i64
// CHECK:           func.call @attempt({{%[0-9]+}}, %s, {{%[0-9]+}}, [[ROW]])
// CHECK-NEXT:      [[I:%[0-9]+]] = arith.index_cast {{%[0-9]+}} : i64 to index
// CHECK:           arith.muli [[I]], {{%[0-9]+}} : index
// CHECK-NEXT:      host.view [[ROW]] : memref<4xf32> to memref<4xf32>
// CHECK-NEXT:      host.view %out : memref<6x4xf32> to memref<24xf32>

// -----

// @helper has one offset in memory, so that two callers are too many.
// expected-error @unknown {{@helper is called by @main, and once more by @other; accepted is one caller, since its memory has one offset}}
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.if %c, %x {then_branch = @helper, else_branch = @helper} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.if %c, %0 {then_branch = @other, else_branch = @other} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
