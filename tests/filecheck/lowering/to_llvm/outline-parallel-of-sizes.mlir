// RUN: byoc-opt %s -p 'outline-parallel{threads=false}' | filecheck %s --check-prefix=SERIAL
// RUN: byoc-opt %s -p 'outline-parallel' | filecheck %s --check-prefix=THREADS

// Each call decides whether there are enough iterations for several threads.
func.func @chosen(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %0 = memref.load %x[%i] : memref<64xf32>
    memref.store %0, %x[%i] : memref<64xf32>
    scf.reduce
  }) {"host.fewest_iterations" = 40 : index} : (index, index, index) -> ()
  func.return
}

// THREADS:      func.func @chosen(
// THREADS:      %[[LEAST:.*]] = arith.constant 40 : index
// THREADS-NEXT: %[[ENOUGH:.*]] = arith.cmpi uge, %{{.*}}, %[[LEAST]] : index
// THREADS-NEXT: scf.if %[[ENOUGH]] {
// THREADS:        llvm.call @byoc_parallel_for(
// THREADS-NEXT: } else {
// THREADS:        func.call @chosen_parallel_0(
// THREADS:      func.func private @chosen_parallel_0({{.*}}) attributes {no_inline} {
// SERIAL:       func.func @chosen(
// SERIAL-NOT:   scf.if
// SERIAL:       func.call @chosen_parallel_0(

// Buffers of different arguments stay apart where they are seen with other sizes.
relay.symbol @n {min = 1, hint = 4}
func.func @seen(
    %x: memref<?x2xf32, #host.layout<#relay.shape<[n, 2]>, #relay.shape<[2, 1]>, #relay.shape<[0]>>>,
    %y: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %flat = host.view %x : memref<?x2xf32, #host.layout<#relay.shape<[n, 2]>, #relay.shape<[2, 1]>, #relay.shape<[0]>>>
      to memref<?xf32, #host.layout<#relay.shape<[2*n]>, #relay.shape<[1]>, #relay.shape<[0]>>>
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %0 = memref.load %flat[%i] : memref<?xf32, #host.layout<#relay.shape<[2*n]>, #relay.shape<[1]>, #relay.shape<[0]>>>
    memref.store %0, %y[%i] : memref<64xf32>
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}

// SERIAL:     func.func private @seen_parallel_0(
// SERIAL-NOT: byoc.may_alias
// SERIAL:     func.return
