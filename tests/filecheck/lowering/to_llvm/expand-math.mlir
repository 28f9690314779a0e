// RUN: byoc-opt %s --split-input-file -p expand-math | filecheck %s

func.func @half(%x: f16) -> f16 {
  %0 = math.exp %x : f16
  func.return %0 : f16
}
// CHECK:      arith.extf %x : f16 to f32
// CHECK-NOT:  math.exp
// CHECK:      arith.mulf {{.*}} fastmath<contract> : f32
// CHECK:      %[[R:.*]] = arith.truncf {{.*}} : f32 to f16
// CHECK-NEXT: func.return %[[R]] : f16

// -----

func.func @kept(%x: f64, %y: f32) -> (f64, f32) {
  %0 = math.exp %x : f64
  %1 = math.atan %y : f32
  func.return %0, %1 : f64, f32
}
// CHECK: math.exp %x : f64
// CHECK: math.atan %y : f32

// -----

// What is at most zero is scaled once, and nothing is left out above.
func.func @below(%x: f32) -> f32 {
  %0 = math.exp %x {at_most_zero} : f32
  func.return %0 : f32
}
// CHECK-LABEL: func.func @below
// CHECK:      arith.cmpf olt
// CHECK-NOT:  arith.cmpf
// CHECK:      arith.shli
// CHECK-NOT:  arith.shli
