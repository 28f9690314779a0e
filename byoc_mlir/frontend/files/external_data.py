"""Files of tensor data beside a model, opened so that a model cannot reach for anything else."""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from byoc_mlir.errors import UnsafeModelError


class ExternalFiles:
    """The data files of one model, each mapped into memory once, read-only.

    Accepted are regular files below the model's folder that are reached through no symbolic link
    and have no second name (hard link).
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._files: dict[str, memoryview] = {}
        self._checked: set[tuple[str, str]] = set()

    def data(self, location: str, what: str) -> memoryview:
        """The content of a file.

        Raises:
            UnsafeModelError: the file is not one that a model may read; `what` is named.
            OSError: it cannot be read.
        """
        if location not in self._files:
            self._files[location] = _map_file(self._folder, _components(location, what), what)
        return self._files[location]

    def verify_checksum(self, location: str, expected: str, what: str) -> None:
        """Compares the SHA-1 of a whole file, as ONNX defines `checksum`.

        Raises:
            UnsafeModelError: it differs.
        """
        if (location, expected) in self._checked:
            return
        digest = hashlib.sha1(self.data(location, what), usedforsecurity=False).hexdigest()
        if digest != expected.lower():
            raise UnsafeModelError(
                f"{what}: the file '{location}' has SHA-1 {digest}, the model says {expected[:64]}"
            )
        self._checked.add((location, expected))


def _components(location: str, what: str) -> list[str]:
    parts = location.split("/")
    kept = [part for part in parts if part != "."]
    is_bad = (
        not kept
        or any(part in ("", "..") for part in kept)
        or any(character in location for character in "\\\0:")
    )
    if is_bad:
        raise UnsafeModelError(
            f"{what}: external data is at {location[:200]!r}; accepted are relative paths below the"
            " model's folder, with '/' between the names"
        )
    return kept


def _map_file(folder: Path, components: Sequence[str], what: str) -> memoryview:
    name = "/".join(components)
    descriptor = _open_below(folder, components, f"{what}: external data '{name}'")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeModelError(f"{what}: external data '{name}' is not a regular file")
        if status.st_nlink > 1:
            raise UnsafeModelError(
                f"{what}: external data '{name}' has {status.st_nlink} hard links, it may be"
                " another file under a new name; put a copy in its place"
            )
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def _open_below(folder: Path, components: Sequence[str], what: str) -> int:
    """Opens a file, refusing symbolic links at every component below `folder`."""
    if os.open not in os.supports_dir_fd:
        return _open_checked(folder, components, what)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory in components[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = _open_component(directory, flags, parent, what)
            os.close(parent)
            parent = below
        # not to wait for the writer of a pipe
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        return _open_component(components[-1], flags, parent, what)
    finally:
        os.close(parent)


def _open_component(name: str, flags: int, parent: int, what: str) -> int:
    if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise UnsafeModelError(f"{what}: '{name}' is a symbolic link; put a copy in its place")
    return os.open(name, flags, dir_fd=parent)


def _open_checked(folder: Path, components: Sequence[str], what: str) -> int:
    """For systems that cannot open relative to a directory."""
    path = folder
    for name in components:
        path = path / name
        if path.is_symlink():
            raise UnsafeModelError(f"{what}: '{name}' is a symbolic link; put a copy in its place")
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
