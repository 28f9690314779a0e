// RUN: byoc-opt %s --split-input-file -p 'add-entry-points{threads=2}' | filecheck %s
// RUN: byoc-opt %s --split-input-file -p 'add-entry-points' | filecheck %s --check-prefix SERIAL

// Regions get their ranges of slots, and a failing call ends the run with the region's number.
func.func private @a_main_0(memref<4xf32>, memref<4xf32>) -> () attributes {byoc.compiler = "a", byoc.workspace = 64 : i64, byoc.workspace_offset = 128 : i64, byoc.state_slots = 2 : i64, byoc.context_slots = 3 : i64, byoc.hooks = ["load", "open", "close", "unload"]}
func.func private @b_main_1(memref<4xf32>, memref<4xf32>) -> () attributes {byoc.compiler = "b", byoc.workspace = 0 : i64, byoc.workspace_offset = 0 : i64, byoc.state_slots = 1 : i64, byoc.context_slots = 1 : i64, byoc.hooks = ["load"]}
func.func @main(%arena: memref<512xi8>, %x: memref<4xf32>, %y: memref<4xf32>) {
  %c = arith.constant 64 : index
  %v = host.place %arena[%c] : memref<512xi8> to memref<4xf32>
  func.call @a_main_0(%x, %v) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @b_main_1(%v, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}

// CHECK:      builtin.module attributes {byoc.state_slots = 3 : i64, byoc.context_slots = 4 : i64, byoc.arena_bytes = 0 : i64}
// CHECK-LABEL: func.func private @main(%state: !llvm.ptr, %context: !llvm.ptr,
// CHECK:      [[STATUS:%.*]] = func.call @a_main_0(%state, %context, %x, %v)
// CHECK:      [[WIDE:%.*]] = arith.extui [[STATUS]] : i32 to i64
// CHECK-NEXT: [[ORIGIN:%.*]] = arith.constant 4294967296 : i64
// CHECK-NEXT: [[CODE:%.*]] = arith.ori [[WIDE]], [[ORIGIN]]
// CHECK:      cf.cond_br {{.*}}, ^[[FAIL:.*]]([[CODE]] : i64), ^[[NEXT:.*]]
// CHECK:      ^[[NEXT]]:
// CHECK:      [[S:%.*]] = llvm.getelementptr inbounds %state[16]
// CHECK:      [[C:%.*]] = llvm.getelementptr inbounds %context[24]
// CHECK:      func.call @b_main_1([[S]], [[C]], %v, %y)
// CHECK:      arith.constant 8589934592 : i64

// CHECK-LABEL: func.func @byoc_load_regions(
// CHECK:      func.call @a_main_0_load(
// CHECK:      func.call @b_main_1_load(
// CHECK:      cf.cond_br {{.*}}, ^[[UNDO:bb[0-9]+]]({{%.*}} : i64), ^{{bb[0-9]+}}
// CHECK:      ^[[UNDO]]([[CODE:%.*]]: i64):
// CHECK:      func.call @a_main_0_unload(
// CHECK-NEXT: cf.br ^[[FAIL:bb[0-9]+]]([[CODE]] : i64)
// CHECK:      ^[[FAIL]]([[CODE:%.*]]: i64):
// CHECK-NEXT: func.return [[CODE]]
// CHECK-LABEL: func.func @byoc_load(
// CHECK:      llvm.call @omp_set_num_threads(
// CHECK:      func.call @byoc_load_regions(
// CHECK-LABEL: func.func @byoc_open(
// CHECK:      [[W:%.*]] = llvm.getelementptr inbounds {{.*}}[128]
// CHECK:      func.call @a_main_0_open({{.*}}, {{.*}}, [[W]])
// CHECK-NOT:  @b_main_1_open
// CHECK-LABEL: func.func @byoc_run(
// CHECK:      [[BEFORE:%.*]] = llvm.call @omp_get_max_threads()
// CHECK-NEXT: [[VARIABLE:%.*]] = llvm.mlir.addressof @byoc_threads
// CHECK-NEXT: [[THREADS:%.*]] = llvm.load [[VARIABLE]] : !llvm.ptr -> i32
// CHECK-NEXT: llvm.call @omp_set_num_threads([[THREADS]])
// CHECK-NEXT: [[BEGUN:%.*]] = llvm.call @byoc_begin_run()
// CHECK-NEXT: [[RESULT:%.*]] = func.call @main(
// CHECK-NEXT: llvm.call @byoc_end_run([[BEGUN]])
// CHECK-NEXT: llvm.call @omp_set_num_threads([[BEFORE]])
// CHECK-NEXT: func.return [[RESULT]]
// CHECK-LABEL: func.func @byoc_close(
// CHECK:      func.call @a_main_0_close(
// CHECK-LABEL: func.func @byoc_unload(

// Without an OpenMP runtime nothing of it is called.
// SERIAL-NOT: omp_set_num_threads

// -----

// A check ends the run with its number, and leaves what it found in the host's slot.
func.func private @a_main_0(memref<4xf32>) -> () attributes {byoc.compiler = "a", byoc.workspace = 0 : i64, byoc.workspace_offset = 0 : i64, byoc.state_slots = 0 : i64, byoc.context_slots = 2 : i64, byoc.hooks = []}
func.func @main(%arena: memref<0xi8>, %n: memref<i64>, %y: memref<4xf32>) {
  host.check %n {what = "a length", least = 1 : i64, most = 80 : i64} : memref<i64>
  func.call @a_main_0(%y) : (memref<4xf32>) -> ()
  func.return
}

// CHECK:      builtin.module attributes {byoc.checks = [{node = "", what = "a length", least = 1 : i64, most = 80 : i64}]
// CHECK-SAME: byoc.context_slots = 3 : i64
// CHECK-LABEL: func.func private @main(
// CHECK:      [[FOUND:%.*]] = memref.load %n[] : memref<i64>
// CHECK:      llvm.store [[FOUND]], {{.*}} : i64, !llvm.ptr
// CHECK-DAG:  arith.cmpi sge, [[FOUND]]
// CHECK-DAG:  arith.cmpi sle, [[FOUND]]
// CHECK:      [[STATUS:%.*]] = arith.select
// CHECK:      cf.cond_br {{.*}}, ^[[FAIL:.*]]([[STATUS]] : i64), ^[[NEXT:.*]]
// CHECK:      ^[[NEXT]]:
// CHECK:      [[C:%.*]] = llvm.getelementptr inbounds %context[8]
// CHECK:      func.call @a_main_0(%state, [[C]], %y)
