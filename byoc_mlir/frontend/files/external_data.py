"""Files of external tensor data, opened so that a model cannot read anything else."""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from byoc_mlir.errors import InvalidModelError, UnsafeModelError
from byoc_mlir.files import identity_of, is_settled

_COARSEST_SECONDS = 2.0
"""Coarsest resolution of time stamps in seconds; two changes within it may have the same stamp."""


@dataclass(frozen=True)
class _Mapped:
    """File mapped into memory, with the file's status when it was mapped."""

    data: memoryview
    path: str
    status: os.stat_result
    seconds: float

    def was_written(self) -> bool | None:
        """True if the file was written to since it was mapped; `None` if that is unknown."""
        try:
            now = os.stat(self.path)
        except OSError:
            return None  # another file, or none, has its name
        then = self.status
        if (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino):
            return None
        if (now.st_size, now.st_mtime_ns) != (then.st_size, then.st_mtime_ns):
            return True
        is_settled = now.st_ctime < self.seconds - _COARSEST_SECONDS
        return False if is_settled and now.st_ctime_ns == then.st_ctime_ns else None

    def identifies(self) -> bool:
        """True if the identity stands for the content that is mapped: it did not change since, and
        long before.
        """
        return is_settled(self.status, self.seconds) and self.was_written() is False


class KnownDigests(Protocol):
    """Store of files' digests, by the identity of a file and its state."""

    def read(self, identity: tuple[int, ...]) -> str | None:
        """Returns a digest, or `None` if it is not known."""
        ...

    def write(self, identity: tuple[int, ...], sha256: str) -> None:
        """Stores a digest."""
        ...


class ExternalFiles:
    """Data files of one model, each mapped into memory once, read-only.

    Only regular files are accepted. After links are followed, they must be below the model's
    folder, or below the folder of the file that the model's path links to.

    Args:
        model: the model's path; locations are relative to its folder, even if the path is a link.
        digests: the required SHA-256 of files, by location.
    """

    def __init__(self, model: Path, digests: Mapping[str, str] | None = None):
        self._model = model
        self._digests = dict(digests or {})
        self._files: dict[str, _Mapped] = {}
        self._checked: set[tuple[str, str]] = set()

    def __reduce__(self) -> tuple[type[ExternalFiles], tuple[Path, Mapping[str, str]]]:
        return ExternalFiles, (self._model, self._digests)

    def data(self, location: str, what: str) -> memoryview:
        """Returns the content of a file.

        Raises:
            UnsafeModelError: a model may not read the file; the message names `what`.
            InvalidModelError: the file cannot be read, or has other content than before.
        """
        if location not in self._files:
            try:
                mapped = self._mapped(_components(location, what), what)
            except OSError as error:
                reason = f"{what}: external data cannot be read: {error}"
                raise InvalidModelError(reason) from error
            if location in self._digests:
                self._check_digest(location, mapped.data)
            self._files[location] = mapped
        return self._files[location].data

    def digest(self, location: str, known: KnownDigests | None = None) -> str:
        """Returns the SHA-256 of a file.

        Args:
            known: store of digests, which saves hashing a file that has not changed for long.

        Raises:
            InvalidModelError: the file cannot be read, or has other content than before.
        """
        data = self.data(location, "the model")
        if location not in self._digests:
            mapped = self._files[location]
            identity = identity_of(mapped.status)
            found = None if known is None else known.read(identity)
            self._digests[location] = found or hashlib.sha256(data).hexdigest()
            if known is not None and found is None and mapped.identifies():
                known.write(identity, self._digests[location])
        return self._digests[location]

    def close(self) -> None:
        """Releases all files; they are mapped again when they are needed."""
        self._files.clear()

    def check_unchanged(self) -> None:
        """Checks that no file was changed in place since it was mapped.

        Raises:
            InvalidModelError: a file was changed.
        """
        for location, mapped in tuple(self._files.items()):
            was_written, seconds = mapped.was_written(), time.time()
            if was_written:
                raise _changed(location)
            if was_written is None and location in self._digests:
                self._check_digest(location, mapped.data)
                self._files[location] = replace(mapped, seconds=seconds)

    def verify_checksum(self, location: str, expected: str, what: str) -> None:
        """Checks the SHA-1 of a whole file, as ONNX defines `checksum`.

        Raises:
            UnsafeModelError: the checksums differ.
        """
        if (location, expected) in self._checked:
            return
        digest = hashlib.sha1(self.data(location, what), usedforsecurity=False).hexdigest()
        if digest != expected.lower():
            raise UnsafeModelError(
                f"{what}: the file '{location}' has SHA-1 {digest}, the model says {expected[:64]}"
            )
        self._checked.add((location, expected))

    def _check_digest(self, location: str, data: memoryview) -> None:
        if hashlib.sha256(data).hexdigest() != self._digests[location]:
            raise _changed(location)

    def _mapped(self, components: Sequence[str], what: str) -> _Mapped:
        name = "/".join(components)
        path = os.path.realpath(self._model.parent.joinpath(*components))
        descriptor = self._open(Path(path), f"{what}: external data '{name}'")
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnsafeModelError(f"{what}: external data '{name}' is not a regular file")
            data = memoryview(b"")
            if status.st_size > 0:
                data = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
            return _Mapped(data, path, status, time.time())
        finally:
            os.close(descriptor)

    def _open(self, path: Path, what: str) -> int:
        """Opens a file by its real path; the path must be below a folder of the model."""
        linked = Path(os.path.realpath(self._model)).parent
        for folder in (Path(os.path.realpath(self._model.parent)), linked):
            if folder in path.parents:
                return _open_below(folder, path.relative_to(folder).parts)
        raise UnsafeModelError(
            f"{what} leads out of the model's folder by a symbolic link; put a copy in its place"
        )


def _changed(location: str) -> InvalidModelError:
    return InvalidModelError(
        f"external data '{location}' was changed after the model was read; compile the model again,"
        " and put a new file in the place of one that is in use"
    )


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


def _open_below(folder: Path, components: Sequence[str]) -> int:
    """Opens a file below a folder; a symbolic link on the path raises `OSError`."""
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory in components[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = os.open(directory, flags, dir_fd=parent)
            os.close(parent)
            parent = below
        # not to wait for the writer of a pipe
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(components[-1], flags, dir_fd=parent)
    finally:
        os.close(parent)
