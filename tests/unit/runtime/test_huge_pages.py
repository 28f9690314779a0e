"""Weights in huge pages, if the system has them."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from byoc_mlir.runtime.system.memory import ask_for_huge_pages, use_huge_pages, whole_pages

PAGE = 1 << 21


def test_only_what_fills_a_page_counts() -> None:
    assert whole_pages([(PAGE, PAGE)], PAGE) == [(PAGE, 2 * PAGE)]
    assert whole_pages([(PAGE + 64, 2 * PAGE)], PAGE) == [(2 * PAGE, 3 * PAGE)]
    assert whole_pages([(PAGE + 64, PAGE)], PAGE) == []
    assert whole_pages([], PAGE) == []


def test_arrays_beside_each_other_fill_pages_together() -> None:
    half = PAGE // 2
    assert whole_pages([(half + 16, half - 16), (0, half)], PAGE) == [(0, PAGE)]
    assert whole_pages([(0, PAGE), (PAGE, PAGE)], PAGE) == [(0, 2 * PAGE)]
    assert whole_pages([(0, half), (half + PAGE // 8, half)], PAGE) == []


def test_arrays_keep_their_place_and_content() -> None:
    memory = np.frombuffer(mmap.mmap(-1, 4 * PAGE), np.float32)
    memory[:] = np.arange(memory.size)
    arrays = [memory[: memory.size // 2], memory[memory.size // 2 :], np.ones(3), np.ones(0)]
    addresses = [array.ctypes.data for array in arrays]
    use_huge_pages(arrays)
    assert [array.ctypes.data for array in arrays] == addresses
    np.testing.assert_array_equal(memory, np.arange(memory.size))


def test_memory_that_cannot_be_written_stays_as_it_is() -> None:
    array = np.frombuffer(bytes(2 * PAGE), np.uint8)
    use_huge_pages([array])
    assert not array.any()


def test_mapped_files_are_asked_for_without_harm(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * (PAGE // 128))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        ask_for_huge_pages(mapped)
        assert mapped[PAGE : PAGE + 256] == bytes(range(256))
