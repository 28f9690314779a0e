// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p 'merge-compiler-regions'
// RUN: byoc-opt %s --split-input-file --verify-diagnostics -p 'partition-graph'

func.func @mixed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{one region is annotated for 'a' and for 'b': nn.relu; a value between two regions needs byoc.compiler_end and byoc.compiler_begin}}
  %2 = byoc.compiler_end %1 for "b" : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

func.func @mixed_operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{one region is annotated for 'a' and for 'b': add}}
  %1 = byoc.compiler_begin %x for "b" : tensor<4xf32>
  %2 = relay.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// -----

func.func @no_begin(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // AR-2: every operand needs its own begin
  // expected-error @below {{operand #1 of add, argument %y, enters the region of 'a' without byoc.compiler_begin}}
  %1 = relay.add %0, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

func.func @no_begin_after_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  // expected-error @below {{operand #0 of add, nn.relu, enters the region of 'a' without byoc.compiler_begin}}
  %3 = relay.add %2, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = byoc.compiler_end %3 for "a" : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}

// -----

func.func @no_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{region of 'a' has no byoc.compiler_end: nn.relu}}
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

func.func @leaves(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  // expected-error @below {{nn.relu leaves the region of 'a' to func.return without byoc.compiler_end}}
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @end_of_argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  // AR-1: an end closes a region
  // expected-error @below {{byoc.compiler_end of argument %x, which no region computes}}
  %0 = byoc.compiler_end %x for "a" : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @end_of_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  // expected-error @below {{byoc.compiler_end of a value that has left its region already}}
  %3 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// -----

func.func @begin_of_begin(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{byoc.compiler_begin of a value that has entered a region already}}
  %1 = byoc.compiler_begin %0 for "a" : tensor<4xf32>
  %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = byoc.compiler_end %2 for "a" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// -----

func.func @crossing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  // expected-error @below {{nn.relu leaves the region of 'a' to byoc.compiler_begin without byoc.compiler_end}}
  %3 = byoc.compiler_begin %1 for "b" : tensor<4xf32>
  %4 = relay.add %3, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = byoc.compiler_end %4 for "b" : tensor<4xf32>
  func.return %5 : tensor<4xf32>
}

// -----

func.func @passed_to_another(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{region begins for 'a', ends for 'b'}}
  %1 = byoc.compiler_end %0 for "b" : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

func.func @around_regions(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  // expected-error @below {{byoc.compiler_end of scf.if, which cannot be in a region}}
  %1 = byoc.compiler_end %0 for "a" : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

func.func @into_regions(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{byoc.compiler_begin is used in another block, by scf.yield}}
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  %1 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %1 : tensor<4xf32>
}

// -----

func.func @to_return(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{byoc.compiler_begin feeds func.return, which no region can hold}}
  func.return %0 : tensor<4xf32>
}

// -----

func.func @not_convex(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{the region of 'a' with nn.relu depends on its own results, through exp, tanh; split it so that it can run as a whole}}
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  %3 = relay.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = byoc.compiler_begin %4 for "a" : tensor<4xf32>
  %6 = relay.add %1, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = byoc.compiler_end %6 for "a" : tensor<4xf32>
  func.return %7 : tensor<4xf32>
}

// -----

func.func @mutual(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = byoc.compiler_begin %x for "a" : tensor<4xf32>
  // expected-error @below {{the region of 'a' with nn.relu depends on its own results, through tanh;}}
  %1 = relay.nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = byoc.compiler_end %1 for "a" : tensor<4xf32>
  %3 = byoc.compiler_begin %2 for "b" : tensor<4xf32>
  %4 = relay.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = byoc.compiler_end %4 for "b" : tensor<4xf32>
  %6 = byoc.compiler_begin %5 for "a" : tensor<4xf32>
  %7 = relay.add %6, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = byoc.compiler_end %7 for "a" : tensor<4xf32>
  func.return %8 : tensor<4xf32>
}
