"""The device `cuda`: an NVIDIA GPU, through its driver."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends.cuda.device_code import device_module
from byoc_mlir.devices import Device
from byoc_mlir.errors import BackendError
from byoc_mlir.nvidia.driver import driver_library
from byoc_mlir.nvidia.gpu import find_gpu
from byoc_mlir.runtime.program import SharedLibrary

_COPY_START = 0.01
"""Assumed milliseconds until a copy starts."""

_COPIED_BYTES = 10_000_000
"""Assumed bytes that a copy from or to pageable memory moves in a millisecond."""

_GIBIBYTE = 1 << 30


class CudaDevice(Device):
    """An NVIDIA GPU. Its driver is all that it needs; a queue is a stream."""

    name: ClassVar[str] = "cuda"
    dlpack_type: ClassVar[int] = 2
    records: ClassVar[bool] = True

    def library(self) -> SharedLibrary:
        return driver_library()

    def module(self) -> ModuleOp:
        return device_module(self.name)

    def unavailable(self) -> str | None:
        try:
            find_gpu()
        except BackendError as error:
            return str(error)
        return None

    def describe(self) -> str:
        gpu = find_gpu()
        return f"{gpu.identity}, {gpu.memory_bytes / _GIBIBYTE:.1f} GiB"

    def identity(self) -> str:
        return "" if self.unavailable() else find_gpu().identity

    def copy_milliseconds(self, size: int) -> float:
        return _COPY_START + size / _COPIED_BYTES
