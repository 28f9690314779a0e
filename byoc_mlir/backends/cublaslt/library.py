"""Lookup of cuBLASLt."""

from __future__ import annotations

import ctypes

from byoc_mlir.errors import BackendError
from byoc_mlir.nvidia.libraries import ToolkitLibrary

CUBLASLT = ToolkitLibrary(
    "cuBLASLt", "libcublasLt.so.13", "BYOC_CUBLASLT_LIBRARY", ("nvidia-cublas",)
)


def unavailable_reason() -> str | None:
    """Returns why there is no usable cuBLASLt and what to do about it, or `None`."""
    try:
        CUBLASLT.load()
    except BackendError as error:
        return str(error)
    return None


def version() -> str:
    """Returns the version of cuBLASLt, such as 13.1.0.

    Raises:
        BackendError: it cannot be loaded.
    """
    function = CUBLASLT.load().cublasLtGetVersion
    function.restype = ctypes.c_size_t
    number: int = function()
    major, rest = divmod(number, 10_000)
    return f"{major}.{rest // 100}.{rest % 100}"
