"""Files of blocks of bytes, as they are written and read."""

from __future__ import annotations

import io
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from byoc_mlir.runtime.files.container import container_bytes, read_container, write_container


def test_blocks_larger_than_a_piece_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    blobs = [rng.bytes(size) for size in (5, (1 << 24) - 64, 0, (1 << 25) + 3, 77)]
    path = tmp_path / "file"
    write_container(path, {"a": 1}, blobs, io.BytesIO(b"before"))
    with path.open("rb") as file:
        found = read_container(file, "file")
    assert found.document == {"a": 1}
    assert [bytes(blob) for blob in found.blobs] == blobs
    assert bytes(found.file[:6]) == b"before"


def test_where_no_thread_starts_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = [np.random.default_rng(0).bytes(1 << 23)]
    expected = container_bytes({}, blobs)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    write_container(tmp_path / "file", {}, blobs)
    assert (tmp_path / "file").read_bytes() == expected


def test_in_memory_it_is_the_same(tmp_path: Path) -> None:
    blobs = [b"one", b"another"]
    write_container(tmp_path / "file", {}, blobs)
    assert (tmp_path / "file").read_bytes() == container_bytes({}, blobs)


def test_what_is_written_is_not_held_a_second_time(tmp_path: Path) -> None:
    blob = bytes(1 << 23)
    tracemalloc.start()
    try:
        write_container(tmp_path / "file", {}, [blob])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(blob)
