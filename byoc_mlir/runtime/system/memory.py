"""Memory of the process: addresses of elements and functions, huge pages, pages of mapped files,
protection, and freed memory.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast
from weakref import ref

import numpy as np

from byoc_mlir.errors import ExecutionError
from byoc_mlir.tensors import Array

_pointer_at: Callable[[int], Any] = ctypes.c_void_p.from_address

_DATA = object.__basicsize__
"""Offset of the pointer to the elements, the first field of an array object; see `PyArray_DATA` of
NumPy's C interface."""


def _from_object(array: Array) -> int:
    return _pointer_at(id(array) + _DATA).value


def _from_interface(array: Array) -> int:
    return int(array.ctypes.data)


def _has_known_layout() -> bool:
    if sys.implementation.name != "cpython":
        return False  # an id is an address there only
    probe = np.empty(1, np.uint8)
    return _pointer_at(id(probe) + _DATA).value == probe.ctypes.data


address_of = _from_object if _has_known_layout() else _from_interface
"""Function that returns an array's address, in a tenth of the time of `array.ctypes.data`."""


def function_address(function: Any) -> int:
    """Returns the address of a function that ctypes knows.

    `ctypes.cast` is not used: it leaves a reference cycle of its argument and its result.
    """
    return cast(int, ctypes.c_void_p.from_buffer(function).value)


_WRITABLE = 0x200
"""Value of `PyBUF_WRITE`."""

_memory_at = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_at.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_memory_at.restype = ctypes.py_object


def array_at(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Returns an array over memory that it does not own, at the given address."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory = cast(memoryview, _memory_at(address, size, _WRITABLE))
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


@lru_cache(256)
def c_array(element: Any, count: int) -> Any:
    """Returns the cached type of C arrays with `count` elements.

    Types are cached because each new one leaves a reference cycle.
    """
    return element * count


_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")

_COLLAPSE = 25
"""Value of MADV_COLLAPSE, which Linux has since 6.1."""

_LARGEST_GAP = 1 << 13
"""Maximum gap in bytes between neighbouring arrays, for the C library's own data."""


def use_huge_pages(arrays: Iterable[Array]) -> None:
    """Moves the memory of arrays to huge pages; their addresses and content stay.

    A model that reads each weight once per run waits for memory and for address translation. With
    89 MB of weights, a run is 1.25 times as fast on pages of 2 MB as on pages of 4 KB.

    Pages that also hold other data stay as they are, as do mapped files, which processes share.
    Nothing changes if the system has no free huge pages, or if they are disabled.
    """
    page, advise = _page_size(), getattr(_c_library(), "madvise", None)
    if not page or advise is None:
        return
    for start, end in whole_pages(((int(a.ctypes.data), a.nbytes) for a in arrays), page):
        advise(start, end - start, _COLLAPSE)


def ask_for_huge_pages(mapped: mmap.mmap) -> None:
    """Advises the system to read a mapped file into huge pages, if it can."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and _page_size():
        with suppress(OSError):  # a kernel without them
            mapped.madvise(advice)


def whole_pages(places: Iterable[tuple[int, int]], page: int) -> list[tuple[int, int]]:
    """Returns the start and end address of each run of whole pages in ranges of memory.

    Args:
        places: addresses and sizes in bytes. Ranges with a small gap between them count as one.
    """
    spans: list[tuple[int, int]] = []
    for start, size in sorted(places):
        if spans and start - spans[-1][1] <= _LARGEST_GAP:
            first, last = spans.pop()
            spans.append((first, max(last, start + size)))
        else:
            spans.append((start, start + size))
    rounded = ((start + -start % page, end - end % page) for start, end in spans)
    return [(start, end) for start, end in rounded if start < end]


@cache
def _page_size() -> int:
    """Returns the bytes of a huge page, or 0 if there are none or they are disabled."""
    try:
        if "[never]" in (_SETTINGS / "enabled").read_text():
            return 0
        return int((_SETTINGS / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return 0


@cache
def _c_library() -> ctypes.CDLL:
    """Returns the C library; `madvise` and `malloc_trim` may be missing."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if hasattr(library, "madvise"):
        library.madvise.argtypes = library.mprotect.argtypes
    if hasattr(library, "malloc_trim"):  # glibc
        library.malloc_trim.argtypes = (ctypes.c_size_t,)
    return library


_files: dict[ref[mmap.mmap], int] = {}
"""Addresses of the first bytes of mapped files.

The key is the mapping and not the address: an unmapped address is reused before `mmap` tells that
the mapping is gone.
"""

_DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)


def remember(mapped: mmap.mmap) -> None:
    """Registers a read-only mapped file until it is unmapped."""
    address = int(np.frombuffer(mapped, np.uint8).ctypes.data)
    _files[ref(mapped, lambda gone: _files.pop(gone, None))] = address


def drop_pages(address: int, size: int) -> None:
    """Drops the whole pages in a range of addresses from the process's memory.

    Only pages of registered files are dropped: a later read gets the same content from the page
    cache. Other memory stays as it is.
    """
    if _DROP is None:
        return
    for known, start in _files.copy().items():  # a copy, since other threads map and unmap
        mapped, offset = known(), address - start
        if mapped is None or not 0 <= offset < len(mapped):
            continue
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = min(offset + size, len(mapped)) // mmap.PAGESIZE * mmap.PAGESIZE
        if first < end:
            mapped.madvise(_DROP, first, end - first)


def protect(address: int, size: int, protection: int) -> None:
    """Sets the protection of pages.

    Args:
        address: address of the first page.
        size: size in bytes.
        protection: flags among `mmap.PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.

    Raises:
        ExecutionError: the system does not allow it.
    """
    if _c_library().mprotect(address, size, protection):
        reason = os.strerror(ctypes.get_errno())
        raise ExecutionError(
            f"memory for native code cannot be protected as {protection}: {reason}"
        )


def return_freed_memory() -> None:
    """Returns free memory of the C library's heap to the system; takes 0.2 ms if there is little.

    glibc keeps freed blocks of the size of packed weights, which are megabytes each. Without this
    call, a third of a gigabyte stayed in use after a model with 260 MB of packed weights was
    closed.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)
