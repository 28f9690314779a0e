// RUN: byoc-opt %s -p 'choose-schedules{threads=false calibration="%S/Inputs/tuned.json"}' | filecheck %s --check-prefix CHOSEN
// RUN: byoc-opt %s -p 'choose-schedules{threads=false calibration="%S/Inputs/tuned.json"},convert-linalg-to-loops{threads=false}' | filecheck %s --check-prefix LOOPS
// RUN: byoc-opt %s -p 'choose-schedules{threads=true calibration="%S/Inputs/tuned.json"}' | filecheck %s --check-prefix USUAL

// CHOSEN: attrs =  {schedule = "blocked_across"}

// With threads it is another problem, of which the file says nothing.
// USUAL-LABEL: @transpose
// USUAL-NOT: schedule

// Four blocks by two, of 16 by 16; the loop along which is read is the inner one.
// LOOPS: scf.for %{{.*}} = %[[ZERO:.*]] to %[[FOUR:.*]] step
// LOOPS: scf.for %{{.*}} = %[[ZERO]] to %[[TWO:.*]] step
// LOOPS: scf.for %{{.*}} = %[[ZERO]] to %[[SIDE:.*]] step
// LOOPS: scf.for %[[INNER:.*]] = %[[ZERO]] to %[[SIDE]] step
// LOOPS-NEXT: %[[FROM:.*]] = arith.addi %{{.*}}, %[[INNER]]
// LOOPS: memref.load %{{.*}}[%[[FROM]]]
func.func private @transpose(%x: memref<32x64xf32>, %y: memref<64x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x64xf32>) outs(%y : memref<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
