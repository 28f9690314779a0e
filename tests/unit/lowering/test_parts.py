"""Modules split into parts, which LLVM compiles in parallel: the split, and the linking."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.symbols import symbol_of
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir import parts
from byoc_mlir.lowering.llvm_ir.codegen import at_once, emit_object, emit_objects
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.testing.networks import NETWORKS

_said: ContextVar[str] = ContextVar("said", default="nothing")

_CALLS = ("kernel", "once", "counted", "small", "other", "counted", "table")


def _global(name: str, value: int, attributes: str = "") -> str:
    return f"""
      "llvm.mlir.global"() <{{global_type = i64, sym_name = "{name}", addr_space = 0 : i32,
        linkage = #llvm.linkage<"internal">, value = {value} : i64{attributes}}}> ({{}}) : () -> ()
    """


def _function(name: str, code: str, attributes: str = "") -> str:
    return f"""
      func.func private @{name}(%x: i64) -> i64 {attributes} {{
        {code}
        func.return %y : i64
      }}
    """


def _kernel(name: str, callee: str) -> str:
    code = f"%s = func.call @{callee}(%x) : (i64) -> i64\n%y = arith.muli %s, %x : i64"
    return _function(name, code, "attributes {no_inline}")


_ONCE = """
%s = arith.addi %x, %x : i64
%y = arith.muli %s, %s : i64
"""
_COUNTED = """
%a = "llvm.mlir.addressof"() <{global_name = @count}> : () -> !llvm.ptr
%c = "llvm.load"(%a) <{ordering = 0 : i64}> : (!llvm.ptr) -> i64
%y = arith.addi %c, %x : i64
"llvm.store"(%y, %a) <{ordering = 0 : i64}> : (i64, !llvm.ptr) -> ()
"""
_TABLE = """
%a = "llvm.mlir.addressof"() <{global_name = @step}> : () -> !llvm.ptr
%c = "llvm.load"(%a) <{ordering = 0 : i64}> : (!llvm.ptr) -> i64
%y = arith.addi %c, %x : i64
"""
_POINTING = (
    "".join(
        f"""
        %a{number} = "llvm.mlir.addressof"() <{{global_name = @{name}}}> : () -> !llvm.ptr
        %n{number} = "llvm.ptrtoint"(%a{number}) : (!llvm.ptr) -> i64
        """
        for number, name in enumerate(("kernel", "other", "counted", "table"))
    )
    + """
    %s = arith.addi %n0, %n1 : i64
    %t = arith.muli %n2, %n3 : i64
    %y = arith.addi %s, %t : i64
    """
)
_ALONE = "attributes {no_inline}"


def _module(more: str = "") -> ModuleOp:
    """Returns kernels that are not inlined, helpers that may be, a variable and a constant."""
    calls = "".join(
        f"%{number + 1} = func.call @{name}(%{number}) : (i64) -> i64\n"
        for number, name in enumerate(_CALLS)
    )
    text = f"""
      {_global("count", 3)}
      {_global("step", 7, ", constant")}
      func.func @main(%0: i64) -> i64 {{ {calls} func.return %{len(_CALLS)} : i64 }}
      {_kernel("kernel", "small")}
      {_kernel("other", "small")}
      {_function("small", "%y = arith.addi %x, %x : i64")}
      {_function("once", _ONCE)}
      {_function("counted", _COUNTED, _ALONE)}
      {_function("table", _TABLE, _ALONE)}
      {more}
    """
    module = Parser(make_context(), text).parse_module()
    ConvertToLLVM().apply(make_context(), module)
    return module


def _names(module: ModuleOp) -> list[set[str]]:
    return [{symbol_of(op) for op in part.definitions} for part in parts.cut(module)]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_OPS", 8)
    monkeypatch.setattr(parts, "COPIED_OPS", 3)


@pytest.mark.usefixtures("small_parts")
def test_what_is_inlined_and_what_changes_stays_together() -> None:
    found = _names(_module())
    assert len(found) > 2
    assert _names(_module()) == found
    homes = {name: [part for part in found if name in part] for name in set[str]().union(*found)}
    assert homes["count"] == homes["counted"]
    assert homes["step"] == homes["table"]
    assert all("small" in part for name in ("main", "kernel", "other") for part in homes[name])
    assert homes["once"] == homes["main"]
    assert all(len(homes[name]) == 1 for name in ("main", "once", "kernel", "count"))


def _vectorised() -> ModuleOp:
    """Returns the module with two kernels marked as vectorised."""
    module = _module()
    for op in module.ops:
        if symbol_of(op) in ("kernel", "other"):
            op.attributes[VECTORISED] = UnitAttr()
    return module


@pytest.mark.usefixtures("small_parts")
def test_functions_in_vectors_have_parts_of_their_own() -> None:
    found = {
        frozenset(map(symbol_of, part.definitions)) - {"small"}: part.vectorised
        for part in parts.cut(_vectorised())
    }
    assert found.pop(frozenset({"kernel", "other"}))
    assert [*found.values()] == [False] * len(found)
    assert found


def test_few_functions_in_vectors_stay_with_the_others() -> None:
    (part,) = parts.cut(_vectorised())
    assert not part.vectorised


@pytest.mark.usefixtures("small_parts")
def test_functions_in_vectors_are_linked() -> None:
    assert _answer(*emit_objects(_vectorised())) == _answer(emit_object(_module()))


def test_small_modules_stay_whole() -> None:
    ((definitions),) = _names(_module())
    assert {"main", "kernel", "small", "count"} <= definitions


def _answer(*files: bytes) -> int:
    with NativeModule(files, ["main"]) as native:
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(native.address("main"))(5)


@pytest.mark.usefixtures("small_parts")
def test_parts_are_linked() -> None:
    objects = emit_objects(_module())
    assert len(objects) > 1
    assert _answer(*objects) == _answer(emit_object(_module()))


_TABLES, _RELOCATIONS, _DISTANCE = 2, 4, 2
"""Constants of ELF: types of symbol and relocation sections, and of a relocation by a 32-bit
distance.
"""


def _near_symbols(code: bytes) -> Iterator[int]:
    """Yields the section of each symbol of an object file that must be near; 0 stands for another
    file.
    """
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<2H", code, 58)
    sections = [struct.unpack_from("<2I4Q2I2Q", code, start + size * at) for at in range(count)]
    (symbols,) = [one[4] for one in sections if one[1] == _TABLES]
    for _, kind, _, _, offset, length, *_ in sections:
        if kind == _RELOCATIONS:
            for _, what, _ in struct.iter_unpack("<2Qq", code[offset : offset + length]):
                if what & 0xFFFFFFFF == _DISTANCE:
                    yield struct.unpack_from("<H", code, symbols + 24 * (what >> 32) + 6)[0]


@pytest.mark.usefixtures("small_parts")
def test_parts_may_be_far_from_each_other() -> None:
    """Checks that no symbol must be near: in a process with much memory, linked files are spread
    over gaps.
    """
    pointing = _function("pointing", _POINTING, _ALONE).replace(" private", "")
    objects = emit_objects(_module(pointing))
    near = [number for file in objects for number in _near_symbols(file)]
    assert len(objects) > 1
    assert near
    assert 0 not in near


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("targets", [(), None])
def test_models_in_parts(targets: tuple[str, ...] | None, tmp_path: Path) -> None:
    model, image = NETWORKS["mnist"](batch=2), np.ones((2, 1, 28, 28), np.float32)
    with byoc_mlir.compile(model, targets=targets, threads=2, cache=False) as executable:
        name = executable.inputs[0].name
        expected = executable.run({name: image})
        code = executable.program.code
        assert isinstance(code, ObjectCode)
        assert len(code.files) > 1
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        for output, values in loaded.run({name: image}).items():
            np.testing.assert_array_equal(values, expected[output])


def test_results_come_in_order_and_errors_are_raised() -> None:
    assert at_once(lambda number: number * number, range(20)) == [n * n for n in range(20)]

    def failing(number: int) -> int:
        if number == 3:
            raise CompilationError("three")
        return number

    with pytest.raises(CompilationError, match="three"):
        at_once(failing, range(5))


def test_threads_have_the_context_of_the_caller() -> None:
    def heard(_: int) -> str:
        time.sleep(0.01)  # for the others to take items
        return _said.get()

    token = _said.set("a word")
    try:
        assert at_once(heard, range(8)) == ["a word"] * 8
    finally:
        _said.reset(token)
