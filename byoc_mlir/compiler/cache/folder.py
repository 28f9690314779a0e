"""Compiled programs on disk, for other processes.

A folder of containers (see `runtime.container`), named by the hash of all that went into them.
Files appear complete or not at all, so processes need no locks; what cannot be read is a miss.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.errors import ArtifactError, ByocError, UnsafeCacheError
from byoc_mlir.files import open_regular
from byoc_mlir.runtime.container import Container, read_container, write_container
from byoc_mlir.runtime.serialise import Blob, Json

FOLDER_VARIABLE = "BYOC_CACHE_DIR"
SIZE_VARIABLE = "BYOC_CACHE_BYTES"
DEFAULT_BYTES = 4 << 30

_SUFFIX = ".byoc"


@dataclass(frozen=True, order=True)
class CacheEntry:
    """A file of a cache."""

    used: float
    """When it was written or read last, in seconds since the epoch."""
    size: int
    path: Path


@dataclass(frozen=True)
class Cache:
    """A folder of compiled programs that holds about `limit` bytes; the oldest go first."""

    folder: Path
    limit: int

    @staticmethod
    def open(folder: str | Path | None) -> Cache | None:
        """The cache in a folder, by default in `$BYOC_CACHE_DIR`; `None` when neither is given.

        Raises:
            UnsafeCacheError: others may write to the folder, and so choose what runs here.
            ByocError: it is no folder, or `$BYOC_CACHE_BYTES` is no number.
        """
        chosen = folder or os.environ.get(FOLDER_VARIABLE)
        if not chosen:
            return None
        path = Path(chosen).expanduser()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ByocError(f"the cache folder '{path}' cannot be made: {error}") from error
        status = path.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise UnsafeCacheError(
                f"the cache folder '{path}' belongs to somebody else, or others may write to it;"
                " `chmod go-w` it, or choose another one"
            )
        return Cache(path, _limit())

    def read(self, key: str) -> Container | None:
        """An entry, or `None`; one that is damaged is deleted."""
        path = self._path(key)
        try:
            with open_regular(path) as file:
                container = read_container(file, path.name)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ArtifactError):
            self.delete(key)
            return None
        return container

    def write(self, key: str, document: dict[str, Json], blobs: Sequence[Blob] = ()) -> None:
        """Writes an entry; a disk that is full or not writable is a warning."""
        try:
            write_container(self._path(key), document, blobs)
            self._prune()
        except OSError as error:
            warnings.warn(
                f"nothing is cached: '{self.folder}' cannot be written: {error}", stacklevel=2
            )

    def delete(self, key: str) -> None:
        """Deletes an entry, if it is there and can be deleted."""
        _delete(self._path(key))

    def clear(self) -> None:
        """Deletes all entries that can be deleted."""
        for entry in self.entries():
            _delete(entry.path)

    def entries(self) -> list[CacheEntry]:
        """The files, from the one that was not used for longest."""
        found: list[CacheEntry] = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            try:
                status = path.stat()
            except OSError:
                continue  # another process deleted it
            found.append(CacheEntry(status.st_mtime, status.st_size, path))
        return sorted(found)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _prune(self) -> None:
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.limit
        for entry in entries:
            if excess <= 0:
                return
            _delete(entry.path)
            excess -= entry.size


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(f"'{path}' cannot be deleted from the cache: {error}", stacklevel=2)


def _limit() -> int:
    text = os.environ.get(SIZE_VARIABLE, "")
    if not text:
        return DEFAULT_BYTES
    try:
        return int(text)
    except ValueError:
        raise ByocError(f"{SIZE_VARIABLE} is {text!r}, expected a number of bytes") from None
