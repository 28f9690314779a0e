// RUN: byoc-opt --backend %S/patterns.py %s -p 'merge-composite{targets=rules}' | filecheck %s

// PL-1: one pattern object stands for one value.
// CHECK-LABEL: func.func @square
// CHECK-NEXT: relay.multiply %x, %y
// CHECK-NEXT: byoc.composite "rules.square" from "multiply_" (%{{.*}} = %x : tensor<4xf32>) -> tensor<4xf32> {
func.func @square(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.multiply %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// PL-2: an alternative that fitted is taken back when a later part does not fit (TVM does not).
// CHECK-LABEL: func.func @backtrack
// CHECK-NEXT: byoc.composite "rules.backtrack" from "nn.relu_tanh_subtract_" (%{{.*}} = %x : tensor<4xf32>)
func.func @backtrack(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.subtract %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// PL-2: the longer form of an option first (TVM: the shorter).
// CHECK-LABEL: func.func @optional
// CHECK-NEXT: byoc.composite "rules.optional" from "nn.relu_minimum_"
// CHECK: byoc.composite "rules.optional" from "minimum_"
func.func @optional(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.minimum %0, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.minimum %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// PL-3: maximum commutes (as add, multiply, minimum), power does not. Parameters as in the pattern.
// CHECK-LABEL: func.func @commutes
// CHECK-NEXT: byoc.composite "rules.commutes" from "exp_maximum_" (%{{.*}} = %x : tensor<4xf32>, %{{.*}} = %y : tensor<4xf32>)
// CHECK: [[E:%.*]] = relay.exp %x :
// CHECK-NEXT: relay.power %y, [[E]]
func.func @commutes(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.maximum %y, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.power %y, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// PL-4: no re-association: (a * b) / c does not match a * (b / c), as it does in TVM.
// CHECK-LABEL: func.func @quotient
// CHECK-NEXT: [[D:%.*]] = relay.divide %y, %z
// CHECK-NEXT: relay.multiply %x, [[D]]
// CHECK-NEXT: byoc.composite "rules.quotient" from "multiply_divide_"
func.func @quotient(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.divide %y, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.multiply %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.divide %2, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// PL-5: all ways up from the add lead over relus to one softmax. PL-9: what lies on the way is part
// of the match, not an input.
// CHECK-LABEL: func.func @dominated
// CHECK-NEXT: byoc.composite "rules.softmax_relus" from "nn.softmax_nn.relu_nn.relu_nn.relu_add_" (%{{.*}} = %x : tensor<1x4xf32>) -> tensor<1x4xf32> {
func.func @dominated(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = relay.nn.softmax %x {axis = -1} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = relay.nn.relu %0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = relay.nn.relu %1 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = relay.nn.relu %0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = relay.add %2, %3 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %4 : tensor<1x4xf32>
}

// PL-5: a value between the two that is used outside, or an op of another kind, prevents it.
// CHECK-LABEL: func.func @not_dominated
// CHECK-NOT: rules.softmax_relus
// CHECK: func.return
func.func @not_dominated(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = relay.nn.softmax %x {axis = -1} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = relay.nn.relu %0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = relay.nn.relu %0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = relay.add %1, %2 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = relay.nn.softmax %x {axis = -1} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %5 = relay.nn.relu %4 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %6 = relay.tanh %4 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %7 = relay.add %5, %6 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %1, %3, %7 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// PL-7: outputs first: of five in a row the last two, then the two before. PL-10: an op belongs to
// one match, and may be an input of others.
// CHECK-LABEL: func.func @outputs_first
// CHECK-NEXT: [[A:%.*]] = relay.abs %x
// CHECK-NEXT: [[B:%.*]] = byoc.composite "rules.abs_abs" from "abs_abs_" (%{{.*}} = [[A]] : tensor<4xf32>)
// CHECK: byoc.composite "rules.abs_abs" from "abs_abs_" (%{{.*}} = [[B]] : tensor<4xf32>)
func.func @outputs_first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.abs %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.abs %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.abs %3 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}

// PL-8: parameters in the order of the pattern, not of the graph; a value used twice is one.
// CHECK-LABEL: func.func @parameters
// CHECK-NEXT: byoc.composite "rules.parameters" from "subtract_multiply_" (%{{.*}} = %y : tensor<4xf32>, %{{.*}} = %x : tensor<4xf32>, %{{.*}} = %z : tensor<4xf32>)
// CHECK: byoc.composite "rules.parameters" from "subtract_multiply_" (%{{.*}} = %y : tensor<4xf32>, %{{.*}} = %x : tensor<4xf32>) -> tensor<4xf32> {
func.func @parameters(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.subtract %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.multiply %z, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.subtract %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.multiply %y, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// PL-11: no inner value leaves, also where its users meet again in the match's root; TVM computes
// ceil twice.
// CHECK-LABEL: func.func @leaves
// CHECK-NOT: rules.ceil_sum
// CHECK: func.return
func.func @leaves(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.ceil %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.add %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// PL-12: what a wildcard matched comes from outside; TVM takes the sigmoid for a parameter, and
// the composite lacks it. The same with a biased product added to itself.
// CHECK-LABEL: func.func @inner_input
// CHECK-NEXT: [[S:%.*]] = relay.sigmoid %x
// CHECK-NEXT: relay.add [[S]], [[S]]
// CHECK-NEXT: [[D:%.*]] = relay.nn.dense %x, %w
// CHECK-NEXT: [[B:%.*]] = relay.add [[D]], %b
// CHECK-NEXT: relay.add [[B]], [[B]]
// CHECK-NEXT: byoc.composite "rules.cos_sum" from "cos_add_" (%{{.*}} = %x : tensor<1x4xf32>)
func.func @inner_input(%x: tensor<1x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = relay.sigmoid %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = relay.add %0, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = relay.nn.dense %x, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %3 = relay.add %2, %b : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  %4 = relay.add %3, %3 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %5 = relay.cos %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %6 = relay.add %5, %5 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %1, %4, %6 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// MC-8: a refused match frees its ops for smaller matches of the same row: the form without the
// option, and the match one op further up. TVM blocks both.
// CHECK-LABEL: func.func @freed
// CHECK-NEXT: [[F:%.*]] = byoc.composite "rules.floor" from "floor_"
// CHECK: relay.round [[F]] {byoc.refused = ["rules.floor: ends in round"]}
// CHECK-NEXT: [[R:%.*]] = byoc.composite "rules.rsqrts" from "rsqrt_rsqrt_" (%{{.*}} = %x : tensor<4xf32>)
// CHECK: relay.rsqrt [[R]] {byoc.refused = ["rules.rsqrts: it is returned"]}
func.func @freed(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.floor %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.round %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.rsqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.rsqrt %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.rsqrt %3 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %4 : tensor<4xf32>, tensor<4xf32>
}

// MC-2: patterns and checks of later rows see types, also of what earlier rows have wrapped.
// CHECK-LABEL: func.func @typed
// CHECK-NEXT: [[S:%.*]] = byoc.composite "rules.square"
// CHECK: byoc.composite "rules.typed" from "negative_" (%{{.*}} = [[S]] : tensor<4xf32>)
// CHECK: relay.negative %y : (tensor<2xf32>) -> tensor<2xf32>
func.func @typed(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %0 = relay.multiply %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.negative %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.negative %y : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<2xf32>
}

// MC-9: one constant, embedded by a row that asks for a constant, passed by one that does not.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: [[C:%.*]] = relay.constant
// CHECK-NEXT: byoc.composite "rules.embedded" from "log_" () -> tensor<4xf32> {
// CHECK-NEXT: relay.constant
// CHECK: byoc.composite "rules.joined" from "erf_concatenate_" (%{{.*}} = %x : tensor<4xf32>, %{{.*}} = [[C]] : tensor<4xf32>)
func.func @constants(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %c = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.log %c : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = relay.concatenate %1, %c {axis = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  func.return %0, %2 : tensor<4xf32>, tensor<8xf32>
}
