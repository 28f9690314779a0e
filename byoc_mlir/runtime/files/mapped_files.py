"""Files that are mapped into memory, whose unused pages can be dropped."""

from __future__ import annotations

import mmap
from weakref import ref

import numpy as np

_files: dict[int, ref[mmap.mmap]] = {}
"""Mapped files by the address of the first byte."""

_DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)


def remember(mapped: mmap.mmap) -> None:
    """Registers a read-only mapped file until it is unmapped."""
    address = int(np.frombuffer(mapped, np.uint8).ctypes.data)

    def forget(gone: ref[mmap.mmap]) -> None:
        if _files.get(address) is gone:
            del _files[address]

    _files[address] = ref(mapped, forget)


def drop_pages(address: int, size: int) -> None:
    """Drops the whole pages in a range of addresses from the process's memory.

    Only pages of registered files are dropped: a later read gets the same content from the page
    cache. Other memory stays as it is.
    """
    if _DROP is None:
        return
    for start, known in _files.copy().items():
        mapped, offset = known(), address - start
        if mapped is None or not 0 <= offset < len(mapped):
            continue
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = min(offset + size, len(mapped)) // mmap.PAGESIZE * mmap.PAGESIZE
        if first < end:
            mapped.madvise(_DROP, first, end - first)
