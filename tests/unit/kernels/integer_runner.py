"""Runner of int8 GEMMs: compiles them and calls them with numpy arrays."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
from helpers.verified import verify_module
from numpy.typing import NDArray
from xdsl.context import Context

from byoc_mlir.kernels.builder import VOID
from byoc_mlir.kernels.integer_gemm.code import POINTERS, define_units
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.ops import POINTER
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.mark_vectorised_functions import MarkVectorisedFunctions
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.cpu import Cpu

_RESULTS = {"sums": np.dtype(np.int32), "numbers": np.dtype(np.float32), "bytes": np.dtype(np.int8)}
_GUARD = 64
"""Number of guard elements after the result."""


def saturating_units() -> list[IntegerUnit]:
    """Returns the units whose int8 instruction saturates, of vectors that the processor has: LLVM
    cannot emulate them.
    """
    features, least = Cpu.host().features, IntegerUnit(4, 16, has_vnni=False, saturates=True)
    found = [least] * ("ssse3" in features)
    if "avx2" in features:
        found += [replace(least, lanes=8), replace(least, lanes=8, panel_vectors=3)]
    if "avx512bw" in features:
        found.append(replace(least, lanes=16, registers=32, panel_vectors=4))
    return found


class Compiled:
    """GEMM as native code."""

    def __init__(self, product: IntegerGemm):
        self._product = product
        module = ModuleBuilder()
        symbol = define_units(module, product.variants[0])
        function = module.function("main", (POINTER,), result=VOID)
        (slots,) = function.parameters
        pointers = [function.pointer(slots, n) for n in range(POINTERS)]
        begin, end = (function.word(slots, POINTERS + n) for n in range(2))
        function.do(symbol, *pointers, begin, end)
        function.finish()
        verify_module(module.module)
        MarkVectorisedFunctions().apply(Context(), module.module)  # as in a program
        self._native = NativeModule(emit_objects(module.module), ["main"])
        self._main = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._native.address("main"))

    def __call__(
        self,
        left: NDArray[Any],
        right: NDArray[Any],
        *,
        start: NDArray[Any],
        scale: NDArray[Any] | None = None,
        offset: NDArray[Any] | None = None,
        residual: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Returns `[rows, outputs]` for `left [images, lines, pixels, channels]` and the
        weights."""
        it = self._product
        rows = it.parameters()[0]
        dtype = _RESULTS[it.epilogue.kind]
        result = np.full(rows * it.outputs + _GUARD, 77, dtype)
        filled = np.zeros((*left.shape[:-1], it.left_channels), it.unit.left_type)
        filled[..., : left.shape[-1]] = left
        arrays = [
            np.array(it.parameters(), np.int64),
            filled,
            it.pack(right),
            _columns(start, it.columns, np.int32),
            _columns(scale, it.columns, np.float32),
            _columns(offset, it.columns, np.float32),
            np.zeros(0) if residual is None else residual,
            result,
        ]
        middle = it.units // 2
        for begin, end in ((middle, it.units), (0, middle)):  # as two threads would
            slots = [*(array.ctypes.data for array in arrays), begin, end]
            self._main((ctypes.c_int64 * len(slots))(*slots))
        assert (result[-_GUARD:] == 77).all()
        return result[:-_GUARD].reshape(rows, it.outputs)


def _columns(values: NDArray[Any] | None, count: int, dtype: Any) -> NDArray[Any]:
    columns = np.zeros(count, dtype)
    if values is not None:
        columns[: len(values)] = values
    return columns


def expected_sums(it: IntegerGemm, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the sums in `i64`, by their definition."""
    height, width = (
        (size - spread * (extent - 1) - 1) // stride + 1
        for size, spread, extent, stride in zip(
            left.shape[1:3], it.dilation, it.window, it.strides, strict=True
        )
    )
    total = np.zeros((len(left), height, width, it.outputs), np.int64)
    for y in range(it.window[0]):
        for x in range(it.window[1]):
            lines = slice(y * it.dilation[0], None, it.strides[0])
            pixels = slice(x * it.dilation[1], None, it.strides[1])
            read = left[:, lines, pixels][:, :height, :width].astype(np.int64)
            total += read @ right[y, x].astype(np.int64)
    return total.reshape(-1, it.outputs)
