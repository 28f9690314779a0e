"""Tables of bytes, by vector instructions if the processor has them, and byte by byte."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from helpers.verified import verify_module

from byoc_mlir.kernels.builder import VOID
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.lookup import lookup_code
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.ops import POINTER
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.cpu import Cpu

_GUARD = 64
"""Number of guard bytes after the result."""


@pytest.mark.parametrize("features", [(), Cpu.host().features], ids=["any", "host"])
@pytest.mark.parametrize("count", [1, 63, 64, 129, 1000])
def test_every_byte_is_looked_up(count: int, features: tuple[str, ...]) -> None:
    code, module = lookup_code(count, features), ModuleBuilder(has_threads=False)
    function = module.function("main", (POINTER,), result=VOID)
    function.do(code.define(module), function.parameters[0])
    function.finish()
    verify_module(module.module)
    native = NativeModule([emit_object(module.module)], ["main"])
    rng = np.random.default_rng(0)
    source, table = (rng.integers(0, 256, size, np.uint8) for size in (count, 256))
    result, words = np.full(count + _GUARD, 77, np.uint8), np.array(code.numbers, np.int64)
    held = {
        Slot.SOURCE: source,
        Slot.WEIGHTS: table,
        Slot.RESULT: result,
        Slot.PARAMETERS: words,
    }
    pointers = [held[slot].ctypes.data if slot in held else None for slot in Slot]
    main = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.address("main"))
    main((ctypes.c_void_p * len(pointers))(*pointers))
    np.testing.assert_array_equal(result[:count], table[source])
    assert (result[count:] == 77).all()
