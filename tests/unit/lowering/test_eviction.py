"""Eviction of weights from the caches, which does not change them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.lowering.eviction import eviction_code
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.runtime.linking.native_module import NativeModule


@pytest.mark.parametrize("elements", [1, 16, 17, 1000])
def test_what_was_written_is_there_afterwards(elements: int) -> None:
    weights = np.random.default_rng(elements).random(elements, np.float32)
    expected = weights.copy()
    module = ModuleBuilder()
    function = module.function("main", (POINTER,), result=VOID)
    function.do(eviction_code(weights.nbytes).define(module), function.parameters[0])
    function.finish()
    slots = (ctypes.c_void_p * len(Slot))()
    slots[Slot.WEIGHTS] = weights.ctypes.data
    with NativeModule([emit_object(module.module)], ["main"]) as native:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.address("main"))(slots)
    np.testing.assert_array_equal(weights, expected)
