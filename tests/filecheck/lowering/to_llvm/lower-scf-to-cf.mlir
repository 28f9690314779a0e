// RUN: byoc-opt %s --split-input-file -p lower-scf-to-cf | filecheck %s

func.func @for(%lb: index, %ub: index, %s: index, %init: f32, %x: f32) -> f32 {
  %r = scf.for %i = %lb to %ub step %s iter_args(%a = %init) -> (f32) {
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  }
  func.return %r : f32
}
// CHECK:      cf.br ^[[HEADER:.*]](%lb, %init : index, f32)
// CHECK-NEXT: ^[[HEADER]](%[[I:.*]]: index, %[[A:.*]]: f32):
// CHECK-NEXT:   %[[C:.*]] = arith.cmpi slt, %[[I]], %ub : index
// CHECK-NEXT:   cf.cond_br %[[C]], ^[[BODY:.*]], ^[[EXIT:.*]]
// CHECK-NEXT: ^[[BODY]]:
// CHECK-NEXT:   %[[B:.*]] = arith.addf %[[A]], %x : f32
// CHECK-NEXT:   %[[NEXT:.*]] = arith.addi %[[I]], %s overflow<nsw> : index
// CHECK-NEXT:   cf.br ^[[HEADER]](%[[NEXT]], %[[B]] : index, f32)
// CHECK-NEXT: ^[[EXIT]]:
// CHECK-NEXT:   func.return %[[A]] : f32

// -----

func.func @if(%c: i1, %x: f32, %y: f32, %m: memref<1xf32>, %i: index) -> f32 {
  %r = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  scf.if %c {
    memref.store %r, %m[%i] : memref<1xf32>
  }
  func.return %r : f32
}
// CHECK:      cf.cond_br %c, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK-NEXT: ^[[THEN]]:
// CHECK-NEXT:   cf.br ^[[MERGE:.*]](%x : f32)
// CHECK-NEXT: ^[[ELSE]]:
// CHECK-NEXT:   cf.br ^[[MERGE]](%y : f32)
// CHECK-NEXT: ^[[MERGE]](%[[R:.*]]: f32):
// CHECK-NEXT:   cf.cond_br %c, ^[[STORE:.*]], ^[[END:.*]]
// CHECK-NEXT: ^[[STORE]]:
// CHECK-NEXT:   memref.store %[[R]]
// CHECK-NEXT:   cf.br ^[[END]]
// CHECK-NEXT: ^[[END]]:
// CHECK-NEXT:   func.return %[[R]]

// -----

func.func @while(%n: index, %k: index) -> index {
  %r = scf.while (%v = %n) : (index) -> (index) {
    %more = arith.cmpi sgt, %v, %k : index
    scf.condition(%more) %v : index
  } do {
  ^bb0(%v: index):
    %h = arith.divui %v, %k : index
    scf.yield %h : index
  }
  func.return %r : index
}
// CHECK:      cf.br ^[[BEFORE:.*]](%n : index)
// CHECK-NEXT: ^[[BEFORE]](%[[V:.*]]: index):
// CHECK-NEXT:   %[[MORE:.*]] = arith.cmpi sgt, %[[V]], %k : index
// CHECK-NEXT:   cf.cond_br %[[MORE]], ^[[AFTER:.*]], ^[[EXIT:.*]]
// CHECK-NEXT: ^[[AFTER]]:
// CHECK-NEXT:   %[[H:.*]] = arith.divui %[[V]], %k : index
// CHECK-NEXT:   cf.br ^[[BEFORE]](%[[H]] : index)
// CHECK-NEXT: ^[[EXIT]]:
// CHECK-NEXT:   func.return %[[V]] : index
