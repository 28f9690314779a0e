"""Mapped files: pages leave memory after their only use, and are read again when needed."""

from __future__ import annotations

import mmap
import sys
import threading
from pathlib import Path

import numpy as np

from byoc_mlir.runtime.system.memory import drop_pages, remember

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


def test_threads_map_and_drop_at_once(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    mapped_file(path).close()
    errors: list[BaseException] = []
    stop = threading.Event()

    def map_again_and_again() -> None:
        while not stop.is_set():
            with path.open("rb") as file:
                remember(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def drop_again_and_again() -> None:
        try:
            for _ in range(4000):
                drop_pages(0, mmap.PAGESIZE)
        except BaseException as error:
            errors.append(error)

    kept = [mapped_file(tmp_path / str(number)) for number in range(100)]
    for mapped in kept:
        remember(mapped)
    mapping = [threading.Thread(target=map_again_and_again) for _ in range(2)]
    dropping = [threading.Thread(target=drop_again_and_again) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in (*mapping, *dropping):
            thread.start()
        for thread in dropping:
            thread.join()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
    for thread in mapping:
        thread.join()
    assert not errors
