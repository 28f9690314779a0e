// RUN: byoc-opt %s -p convert-to-llvm | filecheck %s

// Four bits of each lane as numbers.
// CHECK-LABEL: @high
func.func @high(%v: vector<8xi8>) -> vector<8xf32> {
  // CHECK: llvm.zext %{{.*}} : vector<8xi8> to vector<8xi32>
  // CHECK: llvm.lshr
  // CHECK-NOT: llvm.and
  // CHECK: llvm.sitofp %{{.*}} : vector<8xi32> to vector<8xf32>
  %n = host.codes %v[4, 4] : vector<8xi8> to vector<8xf32>
  func.return %n : vector<8xf32>
}
