// RUN: byoc-opt %s --split-input-file -p convert-to-llvm,mark-cold-functions | filecheck %s

// A run reaches functions by calls and by addresses; what only the other entry points reach is cold.
func.func private @library() -> ()
func.func private @hot() { func.call @library() : () -> () func.return }
func.func private @thread() { func.call @library() : () -> () func.return }
func.func private @both() { func.call @library() : () -> () func.return }
func.func private @setup() { func.call @library() : () -> () func.return }
func.func private @in_table() { func.call @setup() : () -> () func.return }
func.func @byoc_run() {
  func.call @hot() : () -> ()
  %0 = "llvm.mlir.addressof"() <{global_name = @thread}> : () -> !llvm.ptr
  func.call @both() : () -> ()
  func.return
}
func.func @byoc_load() {
  func.call @setup() : () -> ()
  func.call @both() : () -> ()
  func.return
}
// CHECK:     llvm.func internal @hot() {
// CHECK:     llvm.func internal @thread() {
// CHECK:     llvm.func internal @both() {
// CHECK:     llvm.func internal @setup() attributes {no_inline, optimize_none} {
// CHECK:     llvm.func internal @in_table() attributes {no_inline, optimize_none} {
// CHECK:     llvm.func @byoc_run() {
// CHECK:     llvm.func @byoc_load() attributes {no_inline, optimize_none} {

// -----

// What a global mentions may be called by anybody.
"llvm.mlir.global"() <{global_type = !llvm.ptr, sym_name = "table", linkage = #llvm.linkage<"internal">, addr_space = 0 : i32, constant}> ({
  %0 = "llvm.mlir.addressof"() <{global_name = @in_table}> : () -> !llvm.ptr
  llvm.return %0 : !llvm.ptr
}) : () -> ()
func.func private @called() { func.return }
func.func private @in_table() { func.call @called() : () -> () func.return }
func.func @byoc_load() { func.return }
// CHECK:     llvm.mlir.global internal
// CHECK:     llvm.func internal @called() {
// CHECK:     llvm.func internal @in_table() {
// CHECK:     llvm.func @byoc_load() attributes {no_inline, optimize_none} {

// -----

// LLVM takes no function that is to be inlined and not to be optimised.
func.func private @inlined() attributes {always_inline} { func.return }
func.func private @small() attributes {passthrough = ["minsize"]} { func.return }
// CHECK:     llvm.func internal @inlined() attributes {always_inline} {
// CHECK:     llvm.func internal @small() attributes {passthrough = ["minsize"]} {
