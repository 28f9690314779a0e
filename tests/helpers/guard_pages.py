"""Memory of runs between guard pages: a read or write outside of it kills the process.

This is a module for `Settings.backends` of the fuzzer's workers. Inputs, outputs and the arena end
before a page that faults; in the next run they begin after one. The limits of models are small, so
that sizes near the ends of int64 are refused, and not tried.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

import byoc_mlir
from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.errors import OutOfMemoryError
from byoc_mlir.limits import Limits
from byoc_mlir.runtime import context
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.tensors import Array

PAGE = mmap.PAGESIZE
LIMITS = Limits(
    tensor_bytes=1 << 26,
    constant_bytes=1 << 25,
    arena_bytes=1 << 27,
    output_bytes=1 << 26,
    body_nodes=2000,
    seconds=60,
)
_READ_WRITE, _NOTHING, _PRIVATE_ANONYMOUS = 3, 0, 0x22
_MAP_FAILED = (1 << 64) - 1
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_size_t
_libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_size_t] * 2
_placements = count()
_at_end = [True]


def guarded_memory(size: int, alignment: int, *, at_end: bool) -> Array:
    """Returns bytes with a page that faults right after them, or right before."""
    pages = -(-size // PAGE) * PAGE
    start: int = _libc.mmap(0, pages + 2 * PAGE, _NOTHING, _PRIVATE_ANONYMOUS, -1, 0)
    if start == _MAP_FAILED or _libc.mprotect(start + PAGE, pages, _READ_WRITE):
        raise OutOfMemoryError(f"no memory for {size} bytes between guards")
    first = start + PAGE + ((pages - size) // alignment * alignment if at_end else 0)
    memory: Any = (ctypes.c_uint8 * size).from_address(first)
    weakref.finalize(memory, _libc.munmap, start, pages + 2 * PAGE).atexit = False
    return np.frombuffer(memory, np.uint8)


def guarded_empty(shape: Sequence[int], dtype: Any) -> Array:
    """Returns an array whose memory lies between guard pages, otherwise as `numpy.empty`."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if kind.hasobject or not size:
        return np.empty(shape, kind)
    return guarded_memory(size, kind.itemsize, at_end=_at_end[0]).view(kind).reshape(shape)


def guarded(array: Array) -> Array:
    """Returns a copy whose memory lies between guard pages."""
    copy = guarded_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _allocate(self: context.Context, size: int) -> None:
    arena = guarded_memory(max(size, 1), ARENA_ALIGNMENT, at_end=_at_end[0])
    self.__dict__["_arena"] = arena
    self.arena_address, self.arena_bytes = int(arena.ctypes.data), size


def install() -> None:
    """Installs guard pages around the memory of all runs of this process."""
    run, compile_ = Executable.run, byoc_mlir.compile

    def guarded_run(self: Executable, inputs: Any, out: Any = None) -> dict[str, Any]:
        _at_end[0] = next(_placements) % 2 == 0
        if not isinstance(inputs, dict):
            return run(self, inputs, out)
        named = {k: guarded(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        return run(self, named, out)

    def limited_compile(*args: Any, **named: Any) -> Executable:
        return compile_(*args, **{"limits": LIMITS, **named})

    Executable.run = guarded_run
    byoc_mlir.compile = limited_compile
    context._empty = guarded_empty  # pyright: ignore[reportPrivateUsage]
    context.Context.allocate = _allocate


if __name__ == "guard_pages":
    install()
