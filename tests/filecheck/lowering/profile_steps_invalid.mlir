// RUN: not byoc-opt %s -p profile-steps 2>&1 | filecheck %s

// CHECK: profile-steps: there is no @main with slots; run add-entry-points before
builtin.module {
  llvm.func @other() { llvm.return }
}
