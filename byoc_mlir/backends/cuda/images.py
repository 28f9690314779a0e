"""Images of kernels, which the driver loads: machine code, or PTX where there is no GPU.

The driver translates PTX when it loads it, which takes a tenth of a second for a small kernel. So
the compiler lets it translate where there is a GPU, and the cache keeps the machine code.
"""

from __future__ import annotations

import ctypes

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.errors import BackendError
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, emit_assembly
from byoc_mlir.nvidia.driver import ORDINAL, driver_library
from byoc_mlir.nvidia.gpu import ARCHITECTURE, find_gpu, load_driver

_PTX = 1
"""Type of the linker's input."""


def image_of(kernels: ModuleOp) -> bytes:
    """Returns the image of kernels in the `llvm` dialect."""
    text = ptx_of(kernels).encode() + b"\0"
    try:
        find_gpu()
    except BackendError:  # the image is for another machine, whose driver translates it
        return text
    return machine_code(text)


def machine_code(ptx: bytes) -> bytes:
    """Returns the machine code for the GPU of this machine.

    Raises:
        BackendError: the driver refuses the PTX.
    """
    driver = load_driver(driver_library().path)
    with _PrimaryContext(driver), _Linker(driver) as linker:
        return linker.linked(ptx)


class _PrimaryContext:
    """Current primary context of the GPU, in a `with` statement."""

    def __init__(self, driver: ctypes.CDLL):
        self._driver = driver
        self._device, self._context = ctypes.c_int(), ctypes.c_void_p()

    def __enter__(self) -> None:
        device, context = ctypes.byref(self._device), ctypes.byref(self._context)
        _check(self._driver.cuDeviceGet(device, ORDINAL), "cuDeviceGet")
        retained = self._driver.cuDevicePrimaryCtxRetain(context, self._device)
        _check(retained, "cuDevicePrimaryCtxRetain")
        _check(self._driver.cuCtxPushCurrent_v2(self._context), "cuCtxPushCurrent")

    def __exit__(self, *_: object) -> None:
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        self._driver.cuDevicePrimaryCtxRelease_v2(self._device)


class _Linker:
    """Linker of the driver, in a `with` statement."""

    def __init__(self, driver: ctypes.CDLL):
        self._driver, self._state = driver, ctypes.c_void_p()

    def __enter__(self) -> _Linker:
        state = ctypes.byref(self._state)
        _check(self._driver.cuLinkCreate_v2(0, None, None, state), "cuLinkCreate")
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.cuLinkDestroy(self._state)

    def linked(self, ptx: bytes) -> bytes:
        """Returns the machine code of PTX."""
        size = ctypes.c_size_t(len(ptx))
        options = (0, None, None)
        added = self._driver.cuLinkAddData_v2(self._state, _PTX, ptx, size, b"kernels", *options)
        _check(added, "cuLinkAddData")
        code, length = ctypes.c_void_p(), ctypes.c_size_t()
        done = self._driver.cuLinkComplete(self._state, ctypes.byref(code), ctypes.byref(length))
        _check(done, "cuLinkComplete")
        return ctypes.string_at(code, length.value)


def _check(status: int, function: str) -> None:
    if status:
        raise BackendError(f"NVIDIA's driver cannot translate kernels: {function} gave {status}")


_MAJOR, _MINOR = ARCHITECTURE
_TARGET = CodegenTarget("nvptx64-nvidia-cuda", f"sm_{_MAJOR}{_MINOR}", "")


def ptx_of(module: ModuleOp) -> str:
    """Returns the PTX of kernels in the `llvm` dialect.

    Raises:
        CompilationError: LLVM cannot generate code for the module.
    """
    return emit_assembly(module, _TARGET)
