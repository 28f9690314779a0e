"""Statuses of regions, and hooks that fail: compiled in the process, loaded, and in C."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region

import byoc_mlir
from byoc_mlir.abi import split_status, status_origin
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.backends import (
    Backend,
    CodegenContext,
    CSource,
    NativeCode,
    register_backend,
)
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.errors import ByocError, ExecutionError
from byoc_mlir.runtime.program import SharedLibrary

MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float[4] x) => (float[4] y) { a = Relu(x) b = Tanh(a) y = Relu(b) }""")
X = {"x": np.ones(4, np.float32)}
POINTER = llvm.LLVMPointerType()

COUNTING = """
static int states, contexts, loads, opens, bad_load = -1, bad_open = -1;
static int version[3] = {1, VERSION, 0};
const int *c_version(void) { return version; }
int c_load(void **state) {
  if (loads++ == bad_load) return -70000;
  *state = &states; ++states; return 0;
}
int c_open(void **state, void **context, void *w) {
  (void)state; (void)w;
  if (opens++ == bad_open) return -80000;
  *context = &contexts; ++contexts; return 0;
}
void c_close(void **state, void **context) { (void)state; --*(int *)*context; }
void c_unload(void **state) { --*(int *)*state; }
int c_run(const float *x, float *y) { for (int i = 0; i < 4; ++i) y[i] = VERSION * x[i]; return 0; }
void c_fail(int load, int open) { loads = opens = 0; bad_load = load; bad_open = open; }
int c_live(void) { return 100 * states + contexts; }
"""


def test_a_status_holds_the_region_and_all_bits_of_its_number():
    for reason in (1, -1, 2**31 - 1, -(2**31), 65536):
        assert split_status(status_origin(3) | (reason & 0xFFFFFFFF)) == (3, reason)


@register_backend
class Fails(Backend):
    name: ClassVar[str] = "status_fails"
    is_cacheable: ClassVar[bool] = False
    status: ClassVar[int] = 0

    def op_rules(self):
        return {"nn.relu": elementwise_f32}

    def codegen(self, region: FuncOp, context: CodegenContext):
        body = f"return {self.status};"
        return CSource(f"int {region.sym_name.data}(const float *x, float *y) {{ {body} }}")


@pytest.mark.parametrize("status", [7, 65536, 700002, -5, -65536, -(2**31)])
def test_any_status_names_the_region(status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(Fails, "status", status)
    told = f"status_fails_main_0 failed with status {status}"
    with byoc_mlir.compile(MODEL, targets=("status_fails",), fallback="allow") as compiled:
        with pytest.raises(ExecutionError, match=f"{told}; its nodes: Relu_0") as raised:
            compiled.run(X)
        assert raised.value.node == "Relu_0"
        compiled.export_library(tmp_path / "model.so")
    with pytest.raises(ExecutionError, match=f"{told}; its nodes: Relu_0"):
        byoc_mlir.load(tmp_path / "model.so").run(X)
    assert f"7 running: {told}" in run_in_c(tmp_path)


def run_in_c(folder: Path) -> str:
    """Returns the output of a C program that uses `model.so`, twice."""
    (folder / "main.c").write_text("""
#include <stdio.h>
#include "model.h"
int main(void) {
  for (int i = 0; i < 2; i++) {
    float x[4] = {1, 1, 1, 1}, y[4];
    int s = model_init(0);
    if (!s) { s = model_run(x, y); printf("%d %s|", s, model_error()); model_shutdown(); }
    else printf("%d %s|", s, model_error());
  }
  return 0;
}""")
    command = [*c_compiler(), "main.c", "model.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout


def library(folder: Path, version: int) -> Path:
    path = folder / f"libcounting{version}.so"
    source = folder / "counting.c"
    source.write_text(COUNTING)
    flags = ("-shared", "-fPIC", f"-DVERSION={version}")
    subprocess.run([*c_compiler(), *flags, "-o", path, source], check=True)
    return path


@register_backend
class Counting(Backend):
    """Backend with hooks of a C library that counts what is set up."""

    name: ClassVar[str] = "status_counting"
    is_cacheable: ClassVar[bool] = False
    library: ClassVar[Path]

    def op_rules(self):
        return {"nn.relu": elementwise_f32}

    def codegen(self, region: FuncOp, context: CodegenContext):
        name, ops = region.sym_name.data, list[llvm.FuncOp]()
        hooks = (("load", 1, True), ("open", 3, True), ("close", 2, False), ("unload", 1, False))
        for hook, count, has_status in hooks:
            kind = llvm.LLVMFunctionType([POINTER] * count, i32 if has_status else None)
            ops.append(llvm.FuncOp(f"c_{hook}", kind, llvm.LinkageAttr("external")))
            block = Block(arg_types=[POINTER] * count)
            with ImplicitBuilder(block):
                call = llvm.CallOp(
                    f"c_{hook}", *block.args, return_type=i32 if has_status else None
                )
                llvm.ReturnOp(*call.results)
            internal = llvm.LinkageAttr("internal")
            ops.append(llvm.FuncOp(f"{name}_{hook}", kind, internal, body=Region(block)))
        kind = llvm.LLVMFunctionType([POINTER] * 2, i32)
        ops.append(llvm.FuncOp("c_run", kind, llvm.LinkageAttr("external")))
        block = Block(arg_types=[POINTER] * 4)
        with ImplicitBuilder(block):
            llvm.ReturnOp(llvm.CallOp("c_run", *block.args[2:], return_type=i32).results[0])
        kind = llvm.LLVMFunctionType([POINTER] * 4, i32)
        ops.append(llvm.FuncOp(name, kind, llvm.LinkageAttr("internal"), body=Region(block)))
        shared = SharedLibrary(self.library, "STATUS_LIBRARY", "c_version", (1, 3, 0))
        return NativeCode(ModuleOp(ops), state_slots=1, context_slots=1, libraries=(shared,))


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.delenv("STATUS_LIBRARY", raising=False)
    monkeypatch.setattr(Counting, "library", library(tmp_path, 3), raising=False)
    return ctypes.CDLL(str(Counting.library))


def compiled() -> byoc_mlir.Executable:
    return byoc_mlir.compile(MODEL, targets=("status_counting",), fallback="allow")


def loaded(folder: Path) -> byoc_mlir.Executable:
    with compiled() as executable:
        executable.export_library(folder / "model.so")
    return byoc_mlir.load(folder / "model.so")


@pytest.mark.parametrize("way", ["compiled", "loaded"])
def test_hooks_before_one_that_fails_are_undone(way: str, counting: Any, tmp_path: Path):
    make = compiled if way == "compiled" else lambda: loaded(tmp_path)
    counting.c_fail(-1, -1)
    with make() as executable:
        executable.run(X)
        assert counting.c_live() == 202
        counting.c_fail(-1, 1)
    assert counting.c_live() == 0
    with make() as executable:
        with pytest.raises(ExecutionError, match="main_1 failed with status -80000"):
            executable.run(X)
        assert counting.c_live() == 200
    counting.c_fail(1, -1)
    with pytest.raises(ExecutionError, match="main_1 failed with status -70000"), make() as failed:
        failed.run(X)
    assert counting.c_live() == 0


def test_hooks_before_one_that_fails_are_undone_in_c(counting: Any, tmp_path: Path):
    source = COUNTING.replace("bad_open = -1", "bad_open = 1").replace("VERSION", "3")
    (tmp_path / "counting.c").write_text(
        source + '__attribute__((destructor)) void e(void) { printf("live %d", c_live()); }'
    )
    loaded(tmp_path)
    include = ("-include", "stdio.h")
    flags = ("-shared", "-fPIC", *include, "-o", Counting.library)
    subprocess.run([*c_compiler(), *flags, tmp_path / "counting.c"], check=True)
    told = run_in_c(tmp_path)
    failure, success, live = told.split("|")
    assert failure.endswith("main_1 failed with status -80000")
    assert success.startswith("0 ")
    assert live == "live 0"


@pytest.mark.parametrize("way", ["compiled", "loaded"])
def test_another_library_is_named_in_the_environment(
    way: str, counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make = compiled if way == "compiled" else lambda: loaded(tmp_path)
    monkeypatch.setenv("STATUS_LIBRARY", str(library(tmp_path, 4)))
    with make() as executable:
        wanted = 4 * np.tanh(4 * X["x"])
        np.testing.assert_allclose(executable.run(X)["y"], wanted, rtol=1e-6)
    monkeypatch.setenv("STATUS_LIBRARY", str(library(tmp_path, 2)))
    with pytest.raises(ByocError, match=r"has version 1\.2\.0, needed is 1\.3\.0"), make() as old:
        old.run(X)
