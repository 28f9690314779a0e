"""Mapped files: pages leave memory after their only use, and are read again when needed."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from byoc_mlir.runtime.files.mapped_files import drop_pages, remember

PAGES = 64


def mapped_file(path: Path) -> mmap.mmap:
    """Returns a file of `PAGES` pages, each byte with a number."""
    path.write_bytes(bytes(range(256)) * (PAGES * mmap.PAGESIZE // 256))
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def resident(path: Path) -> int:
    """Returns the kilobytes of a mapped file that are resident."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    next(line for line in lines if line.endswith(str(path)))
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def test_pages_of_a_file_leave_memory_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    mapped = mapped_file(path)
    remember(mapped)
    array = np.frombuffer(mapped, np.uint8)
    want = int(array.sum(dtype=np.int64))
    assert resident(path) == PAGES * mmap.PAGESIZE >> 10
    drop_pages(int(array.ctypes.data) + 1, array.size)  # its first page stays
    assert resident(path) == mmap.PAGESIZE >> 10
    assert int(array.sum(dtype=np.int64)) == want


def test_other_memory_stays(tmp_path: Path) -> None:
    remember(mapped_file(tmp_path / "gone"))
    array = np.ones(PAGES * mmap.PAGESIZE, np.uint8)
    drop_pages(int(array.ctypes.data), array.size)
    assert array.all()
