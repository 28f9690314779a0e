"""Repacked constants, which the programs of a process share.

A model with dynamic shapes has a program for each set of shapes, and several regions may read one
constant. Code that requires a constant in another layout looks for a shared copy when it is loaded,
and creates one only if there is none; see `FIND_PACKED` in `abi.py`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from byoc_mlir.abi import FIND_PACKED, FREE_PACKED, KEEP_PACKED
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.system.memory import drop_pages, function_address

_POINTER = ctypes.c_void_p
_Same = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, _POINTER)
_Clone = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, _POINTER)
_Destroy = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER)
_Find = ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _POINTER)
_Keep = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int64, *[_POINTER] * 5)
_Free = ctypes.CFUNCTYPE(None, _POINTER)


@dataclass
class _Copy:
    """Copy of a constant in another layout."""

    address: int
    source: int
    """Address of the constant: every program with the copy keeps the constant there."""
    layout: int
    destroy: Callable[[int], int]
    users: int = 1


class _Copies:
    """Registry of all copies. The garbage collector may release a copy at any time."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self._by_address: dict[int, _Copy] = {}
        self._by_source: dict[int, list[_Copy]] = {}
        self.new_bytes = threading.local()
        """Counter for each thread: `count`, the bytes of the copies that it created."""

    def find(self, source: int, layout: int, same: int) -> int:
        with self.lock:
            for copy in tuple(self._by_source.get(source, ())):
                if copy.users == 0:
                    continue  # the garbage collector has freed it since
                copy.users += 1
                if _Same(same)(copy.layout, layout):
                    return copy.address
                self.free(copy.address)
        return 0

    def keep(
        self, address: int, size: int, source: int, layout: int, same: int, clone: int, destroy: int
    ) -> None:
        own, destroy_layout = _POINTER(), _Destroy(destroy)
        if _Clone(clone)(ctypes.addressof(own), layout) != 0 or own.value is None:
            return  # no memory: the copy is not shared
        copy = _Copy(address, source, own.value, destroy_layout)
        with self.lock:
            self._by_address[address] = copy
            self._by_source.setdefault(source, []).append(copy)
        self.new_bytes.count = getattr(self.new_bytes, "count", 0) + size
        drop_pages(source, size)  # the copy is what will be read; it is no smaller

    def free(self, address: int | None) -> None:
        with self.lock:
            copy = self._by_address.get(address or 0)
            if copy is not None:
                copy.users -= 1
                if copy.users > 0:
                    return
                del self._by_address[copy.address]
                self._by_source[copy.source].remove(copy)
                if not self._by_source[copy.source]:
                    del self._by_source[copy.source]
        if copy is not None:
            copy.destroy(copy.layout)
        _free_memory(address)


_copies = _Copies()


_free_memory = ctypes.CDLL(None).free
_free_memory.argtypes, _free_memory.restype = (_POINTER,), None


_FUNCTIONS = {
    FIND_PACKED: _Find(_copies.find),
    KEEP_PACKED: _Keep(_copies.keep),
    FREE_PACKED: _Free(_copies.free),
}

ADDRESSES = {name: function_address(function) for name, function in _FUNCTIONS.items()}
"""Addresses of the functions by name, for code that is linked."""


@contextmanager
def counted_copies() -> Generator[Callable[[], int]]:
    """Yields a function that returns the bytes of the copies that this thread has created in the
    `with` body so far.
    """
    before = getattr(_copies.new_bytes, "count", 0)
    yield lambda: getattr(_copies.new_bytes, "count", 0) - before
