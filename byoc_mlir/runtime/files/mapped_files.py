"""Files that are mapped into memory, whose unused pages can be dropped."""

from __future__ import annotations

import mmap
from weakref import ref

import numpy as np

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
