"""The library that is found, and NVIDIA's own descriptors, which need no GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import i32

from byoc_mlir.backends.cublaslt import calls, library
from byoc_mlir.backends.cublaslt.backend import CublasLtBackend
from byoc_mlir.compiler.link import join_modules
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.lowering.symbols import external_functions
from byoc_mlir.nvidia.libraries import EXPLAIN
from byoc_mlir.runtime.linking.native_module import NativeModule

_WORDS = (77, 1, 0, 36, 1 << 20, 0, 40, 24, 3, 960, 0, 40, 12, 3, 0, 0, 24, 12, 3, 288)
"""Words of three matmuls in `tf32` with bias and GELU, whose A is shared."""


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.CUBLASLT.environment, "/nowhere/libcublasLt.so.13")

    found = CublasLtBackend().unavailable()

    assert found is not None
    assert "/nowhere/libcublasLt.so.13" in found
    assert "pip install nvidia-cublas" in found


def test_a_library_is_described(cublaslt: ctypes.CDLL) -> None:
    assert CublasLtBackend().unavailable() is None
    assert CublasLtBackend().describe().startswith("cuBLASLt 13.1.0, ")


class _Descriptors:
    """Set-up functions of the generated code, linked to NVIDIA's library."""

    def __init__(self, path: Path):
        self.library = ctypes.CDLL(str(path))
        module = calls.shared_functions()
        for name in (calls.DESCRIBE, calls.LAYOUT):
            function = module.function(f"call_{name}", (POINTER, POINTER))
            function.finish(function.call(name, *function.parameters, result=i32))
        device = ModuleBuilder()
        device.function(EXPLAIN, (POINTER,), result=VOID).finish()
        join_modules(module.module, [device.module])
        symbols = {
            name: ctypes.addressof(ctypes.c_char.in_dll(self.library, name))
            for name in external_functions(module.module)
        }
        names = [f"call_{name}" for name in (calls.DESCRIBE, calls.LAYOUT)]
        self._module = NativeModule([emit_object(module.module)], names, symbols)

    def call(self, name: str, descriptor: ctypes.Array, words: Sequence[int]) -> int:
        """Calls a set-up function."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        given = (ctypes.c_int64 * len(words))(*words)
        return prototype(self._module.address(f"call_{name}"))(descriptor, given)

    def attribute(self, getter: str, descriptor: ctypes.Array, number: int, size: int) -> int:
        """Returns an attribute of a descriptor."""
        value, written = ctypes.c_int64(), ctypes.c_size_t()
        to = (ctypes.byref(value), ctypes.c_size_t(size), ctypes.byref(written))
        assert self.library[getter](descriptor, number, *to) == 0
        assert written.value == size
        return value.value


@pytest.fixture(scope="module")
def descriptors() -> _Descriptors:
    """Returns the functions, or skips a test without the wheel."""
    path = library_in_wheel("nvidia-cublas", "libcublasLt.so.13")
    if path is None:
        pytest.skip("cuBLASLt is not installed: the wheel nvidia-cublas has it")
    return _Descriptors(path)


def test_an_operation_has_its_attributes(descriptors: _Descriptors) -> None:
    operation = (ctypes.c_int64 * calls.OPERATION_SLOTS)()

    assert descriptors.call(calls.DESCRIBE, operation, _WORDS) == 0

    getter = "cublasLtMatmulDescGetAttribute"
    sizes = {0: 4, 3: 4, 4: 4, 7: 4, 8: 8}
    found = [descriptors.attribute(getter, operation, *pair) for pair in sizes.items()]
    assert found == [77, 1, 0, 36, 16]


def test_a_layout_has_its_attributes(descriptors: _Descriptors) -> None:
    layout = (ctypes.c_int64 * calls.LAYOUT_SLOTS)()

    assert descriptors.call(calls.LAYOUT, layout, _WORDS[5:]) == 0

    getter = "cublasLtMatrixLayoutGetAttribute"
    sizes = {0: 4, 2: 8, 3: 8, 4: 8, 5: 4, 6: 8}
    found = [descriptors.attribute(getter, layout, *pair) for pair in sizes.items()]
    assert found == [0, 40, 24, 40, 3, 960]
