"""Object code in the process: far calls, jump tables, constant pools, loading and unloading."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jit_helpers import Native
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ExecutionError
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.runtime.linking.native_module import NativeModule

_FAR = """
llvm.func @far(i64) -> i64
llvm.func @near(%x: i64) -> i64 {
  %0 = llvm.call @far(%x) : (i64) -> i64
  llvm.return %0 : i64
}
llvm.func @address() -> !llvm.ptr {
  %0 = llvm.mlir.addressof @far : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
"""


def _object(text: str) -> bytes:
    return emit_object(Parser(make_context(), text).parse_module())


def _long_function(module: NativeModule, name: str) -> Callable[[int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(module.address(name))


@pytest.fixture
def triple() -> Any:
    """Returns a Python function for C, in memory far from the JIT's."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 3 * x)


def test_external_symbols_may_be_anywhere(triple: Any) -> None:
    address = ctypes.cast(triple, ctypes.c_void_p).value
    assert address is not None
    with NativeModule([_object(_FAR)], ["near", "address"], {"far": address}) as module:
        assert _long_function(module, "near")(14) == 42
        assert ctypes.CFUNCTYPE(ctypes.c_void_p)(module.address("address"))() == address


def test_missing_symbols_are_an_error() -> None:
    with pytest.raises(ExecutionError, match="cannot be linked"):
        NativeModule([_object(_FAR)], ["near"])


def test_unknown_entry_points_and_closed_modules() -> None:
    code = _object("llvm.func @f(%x: i64) -> i64 { llvm.return %x : i64 }")
    module = NativeModule([code], ["f"])
    with pytest.raises(ExecutionError, match=r"g is no entry point .* there are: f"):
        module.address("g")
    module.close()
    module.close()
    with pytest.raises(ExecutionError, match="may be closed"):
        module.address("f")
    with pytest.raises(ExecutionError, match="cannot be linked"):
        NativeModule([b"not an object file"], ["f"])


def test_jump_tables_and_constant_pools() -> None:
    numbers = range(12)
    blocks = "\n".join(
        f"^c{number}:\n  %v{number} = llvm.mlir.constant({number * number + 0.5} : f64) : f64\n"
        f"  llvm.br ^end(%v{number} : f64)"
        for number in numbers
    )
    text = f"""
llvm.func @f(%x: i64, %out: !llvm.ptr) {{
  %d = llvm.mlir.constant(-1.0 : f64) : f64
  "llvm.switch"(%x, %d)[^end, {", ".join(f"^c{number}" for number in numbers)}]
    <{{case_values = dense<{[*numbers]}> : vector<12xi64>,
      case_operand_segments = array<i32: {", ".join("0" for _ in numbers)}>,
      operandSegmentSizes = array<i32: 1, 1, 0>}}> : (i64, f64) -> ()
{blocks}
^end(%r: f64):
  llvm.store %r, %out : f64, !llvm.ptr
  llvm.return
}}"""
    native = Native(text)
    out = np.zeros(1)
    for number in (0, 3, 11, 12, -5):
        native.call("f", number, out)
        assert out[0] == (number * number + 0.5 if 0 <= number < 12 else -1.0)


def test_globals_have_their_values_and_alignment() -> None:
    text = """
"memref.global"() <{sym_name = "table", sym_visibility = "private", constant,
  type = memref<3xi16>, initial_value = dense<[1, -2, 3]> : tensor<3xi16>}> : () -> ()
"memref.global"() <{sym_name = "flags", sym_visibility = "private", constant,
  type = memref<4xi1>, initial_value = dense<[true, false, true, true]> : tensor<4xi1>}> : () -> ()
func.func @f(%i: index, %out: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %t = memref.get_global @table : memref<3xi16>
  %g = memref.get_global @flags : memref<4xi1>
  %0 = memref.load %t[%i] : memref<3xi16>
  %1 = memref.load %g[%i] : memref<4xi1>
  %2 = arith.extsi %0 : i16 to i64
  %3 = arith.constant 100 : i64
  %4 = arith.addi %2, %3 : i64
  %5 = arith.select %1, %4, %2 : i64
  memref.store %5, %out[%c0] : memref<1xi64>
  func.return
}"""
    native = Native(text)
    out = np.zeros(1, np.int64)
    found = []
    for index in range(3):
        native.call("f", index, out)
        found.append(int(out[0]))
    assert found == [101, -2, 103]


def test_modules_are_compiled_and_run_in_many_threads() -> None:
    results: dict[int, int] = {}

    def work(number: int) -> None:
        code = _object(
            f"llvm.func @f(%x: i64) -> i64 {{ %0 = llvm.mlir.constant({number}) : i64 "
            "%1 = llvm.mul %x, %0 : i64 llvm.return %1 : i64 }"
        )
        with NativeModule([code], ["f"]) as module:
            results[number] = _long_function(module, "f")(1000)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 1000 * number for number in range(8)}
