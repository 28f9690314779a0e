"""Protection of pages of memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache

from byoc_mlir.errors import ExecutionError


def protect(address: int, size: int, protection: int) -> None:
    """Sets the protection of pages.

    Args:
        address: address of the first page.
        size: size in bytes.
        protection: flags among `mmap.PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.

    Raises:
        ExecutionError: the system does not allow it.
    """
    if _mprotect()(address, size, protection):
        reason = os.strerror(ctypes.get_errno())
        raise ExecutionError(
            f"memory for native code cannot be protected as {protection}: {reason}"
        )


@cache
def _mprotect() -> Callable[[int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
