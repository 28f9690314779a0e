"""Translator to LLVM IR: its refusals, and its time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from jit_helpers import lowered, optimised_assembly
from llvmlite import binding
from llvmlite.binding.targets import FeatureMap
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Block, Region
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.host_pipeline import vector_bits
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, emit_object
from byoc_mlir.lowering.llvm_ir.translate import translate_module
from byoc_mlir.runtime.system.cpu import Cpu

SAXPY = """
func.func @saxpy(%a: f32, %x: memref<1024xf32>, %y: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<1024xf32>
    %1 = memref.load %y[%i] : memref<1024xf32>
    %2 = arith.mulf %a, %0 fastmath<contract> : f32
    %3 = arith.addf %2, %1 fastmath<contract> : f32
    memref.store %3, %y[%i] : memref<1024xf32>
  }
  func.return
}
"""


def _parsed(text: str) -> ModuleOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llvm.func internal @f()", "@f has no body, so its linkage must be external"),
        (
            "llvm.func @f(%x: !llvm.ptr {llvm.unheard_of}) { llvm.return }",
            "attribute llvm.unheard_of = unit on an argument of @f is not supported",
        ),
        (
            "llvm.func @f() attributes {unheard_of} { llvm.return }",
            "attribute unheard_of = unit of function @f is not supported",
        ),
        (
            "llvm.func @f() { %0 = arith.constant 1 : i32 llvm.return }",
            "arith.constant at loc.* cannot be translated",
        ),
        (
            "llvm.func @f(%p: !llvm.ptr, %x: i32) { "
            '%0 = "llvm.atomicrmw"(%p, %x) <{bin_op = 99 : i64, ordering = 2 : i64}> '
            ": (!llvm.ptr, i32) -> i32 llvm.return }",
            r"llvm.atomicrmw with bin_op 99 is not supported; supported are 0 \(xchg\), 1 \(add\)",
        ),
        ("func.func @f() { func.return }", "func.func at loc.* cannot be translated"),
        (
            "llvm.func @f() { %0 = llvm.mlir.undef : tuple<i32> "
            "llvm.call @f(%0) : (tuple<i32>) -> () llvm.return }",
            "type tuple<i32> does not exist in LLVM",
        ),
        (
            "llvm.func @f() { llvm.return }\n"
            "llvm.mlir.global external @g() : i32 { %0 = llvm.mlir.addressof @f : !llvm.ptr "
            "%1 = llvm.ptrtoint %0 : !llvm.ptr to i32 llvm.return %1 : i32 }",
            "llvm.ptrtoint in the initialiser of global @g is not supported",
        ),
    ],
)
def test_what_cannot_be_expressed_is_an_error(text: str, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        translate_module(Parser(make_context(), text).parse_module())


def test_what_llvm_rejects_is_a_compilation_error() -> None:
    module = _parsed("llvm.func @f() -> i32 { llvm.return }")
    with pytest.raises(CompilationError, match="LLVM rejects the module"):
        emit_object(module)


def _optimised_for(
    monkeypatch: pytest.MonkeyPatch, folder: Path, cpu: str, features: str = ""
) -> str:
    target = CodegenTarget(CodegenTarget.host().triple, cpu, features)
    monkeypatch.setattr(CodegenTarget, "current", lambda: target)
    return optimised_assembly(lowered(SAXPY), folder)


def test_noalias_loops_are_vectorised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assembly = _optimised_for(monkeypatch, tmp_path, "x86-64-v3")
    assert "fmul contract <8 x float>" in assembly
    assert "vector.memcheck" not in assembly


@pytest.mark.parametrize(("features", "width"), [("", 4), ("+avx2,+fma", 8)])
def test_cpu_and_features_are_respected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, features: str, width: int
) -> None:
    assert f"<{width} x float>" in _optimised_for(monkeypatch, tmp_path, "x86-64", features)


def test_vectors_are_as_long_as_those_of_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    features = FeatureMap({"avx512f": True, "avx512vl": True, "avx512bw": True})
    with monkeypatch.context() as patched:
        patched.setattr(binding, "get_host_cpu_name", lambda: "rocketlake")
        patched.setattr(binding, "get_host_cpu_features", lambda: features)
        patched.setattr(Cpu, "limit", lambda: None)
        target = CodegenTarget.host.__wrapped__()
    assert vector_bits(target) == 512
    assert "<16 x float>" in _optimised_for(monkeypatch, tmp_path, target.cpu, target.features)


def _calls(count: int) -> ModuleOp:
    """Returns the initialisation of a large network: one call after another."""
    block = Block(arg_types=[llvm.LLVMPointerType()])
    for number in range(count):
        constant = llvm.ConstantOp.create(
            result_types=[i64], properties={"value": IntegerAttr(number, 64)}
        )
        block.add_ops([constant, llvm.CallOp("step", block.args[0], constant, return_type=i32)])
    block.add_op(llvm.ReturnOp())
    pointer = llvm.LLVMPointerType()
    return ModuleOp(
        [
            llvm.FuncOp(
                "step", llvm.LLVMFunctionType([pointer, i64], i32), llvm.LinkageAttr("external")
            ),
            llvm.FuncOp(
                "init",
                llvm.LLVMFunctionType([pointer]),
                llvm.LinkageAttr("external"),
                body=Region(block),
            ),
        ]
    )


def test_straight_line_code_takes_time_by_its_length() -> None:
    """Checks ten times as many calls: they take ten times as long, not a hundred times."""
    seconds: list[float] = []
    for count in (1_000, 10_000):
        module = _calls(count)
        start = time.process_time()
        assembly = translate_module(module)
        seconds.append(time.process_time() - start)
        assert assembly.count("call i32 @step(ptr %v0, i64 ") == count
    assert seconds[1] < 40 * seconds[0]


def test_module_attributes_are_kept() -> None:
    module = _parsed("llvm.func @f() { llvm.return }")
    module.attributes["llvm.target_triple"] = StringAttr("x86_64-unknown-linux-gnu")
    assert 'target triple = "x86_64-unknown-linux-gnu"' in translate_module(module)
