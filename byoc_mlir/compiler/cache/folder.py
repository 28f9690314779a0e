"""Compiled programs on disk, for other processes.

The cache is a folder of containers (see `runtime.container`), named by the hash of their
dependencies. Files appear complete or not at all, so processes need no locks. An unreadable file
counts as a cache miss.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from byoc_mlir.errors import ArtifactError, ByocError, InvalidArtifactError, UnsafeCacheError
from byoc_mlir.files import identity_of, is_settled, open_regular
from byoc_mlir.runtime.files.container import Container, read_container, write_container
from byoc_mlir.runtime.files.serialise import Blob, Json
from byoc_mlir.warned import warn_user

SWITCH_VARIABLE = "BYOC_CACHE"
FOLDER_VARIABLE = "BYOC_CACHE_DIR"
SIZE_VARIABLE = "BYOC_CACHE_BYTES"
DEFAULT_BYTES = 4 << 30

_SUFFIX = ".byoc"
_KEY = "key"
"""Field of each document with the entry's key, as a file's name may change."""
_ABANDONED_SECONDS = 3600.0
"""Seconds after which an unfinished file must belong to a process that was killed."""

_USED_SECONDS = 3600.0
"""Seconds for which a file counts as just used: its time stamp stays, and with it the digest that
is known for its status."""

_LARGE_BYTES = 1 << 20
"""Bytes of a file that takes longer to hash than its known digest takes to read."""

Folder: TypeAlias = str | Path | Literal[False] | None
"""Folder of the cache; `False` for no cache; `None` for `$BYOC_CACHE_DIR`, or else the user's
folder."""

Kept: TypeAlias = Literal["programs", "calibration"]
"""Kind of content; `BYOC_CACHE=calibration` keeps only calibrations."""


@dataclass(frozen=True, order=True)
class CacheEntry:
    """File in a cache."""

    used: float
    """Time of the last write or read, in seconds since the epoch."""
    size: int
    path: Path

    @property
    def is_complete(self) -> bool:
        """True if the entry is complete.

        Otherwise, a process is writing it, or was killed while it wrote.
        """
        return self.path.suffix == _SUFFIX

    @property
    def is_abandoned(self) -> bool:
        """True if the file is unfinished, and so old that no process can still be writing it."""
        return not self.is_complete and self.used < time.time() - _ABANDONED_SECONDS


@dataclass(frozen=True)
class Cache:
    """Folder of compiled programs that holds about `limit` bytes.

    The least recently used programs are deleted first.
    """

    folder: Path
    limit: int

    @staticmethod
    def open(folder: Folder = None, kept: Kept = "programs") -> Cache | None:
        """Opens the cache in a folder.

        By default, the folder is `$BYOC_CACHE_DIR`, or else the user's cache folder.
        `BYOC_CACHE=off` disables the cache; `BYOC_CACHE=calibration` disables it for programs. If
        the user's folder is unusable, the function warns.

        Returns:
            The cache, or `None` if nothing is cached.

        Raises:
            UnsafeCacheError: other users may write to the folder, and so choose what code runs
                here.
            ByocError: the path is no folder, or a variable has a value that is not accepted.
        """
        if folder:
            return Cache(own_folder(Path(folder).expanduser()), _limit())
        if folder is False or not is_switched_on(kept):
            return None
        named = os.environ.get(FOLDER_VARIABLE)
        if named:
            return Cache.open(named)
        limit = _limit()
        try:
            return Cache(own_folder(users_folder()), limit)
        except ByocError as error:
            _warn_once(f"nothing is cached: {error}; {FOLDER_VARIABLE} names another folder")
            return None

    @property
    def digests(self) -> FileDigests:
        """Returns the digests of files that the cache has."""
        return FileDigests(self)

    def read(self, key: str) -> Container | None:
        """Reads an entry; returns `None` if there is none.

        Deletes entries that are damaged, renamed, or that other users may have written. A large
        entry is hashed only if its status changed, or if it was not used for an hour.
        """
        path = self._path(key)
        try:
            with open_regular(path, os.O_NOFOLLOW) as file:
                if not _is_own(os.fstat(file.fileno())):
                    raise PermissionError
                container = self._container(file, path.name)
                if container.document.pop(_KEY, None) != key:
                    raise InvalidArtifactError(f"'{path.name}' is an entry with another name")
                return container
        except FileNotFoundError:
            return None
        except (OSError, ArtifactError):
            self.delete(key)
            return None

    def _container(self, file: BinaryIO, name: str) -> Container:
        """Reads a file, and marks it as used."""
        status = os.fstat(file.fileno())
        if status.st_mtime < time.time() - _USED_SECONDS:
            with suppress(OSError):  # a folder that is only read serves as well
                os.utime(file.fileno())
            status = os.fstat(file.fileno())
        if status.st_size < _LARGE_BYTES:
            return read_container(file, name)
        known = self.digests.read(identity_of(status))
        container = read_container(file, name, known)
        if known != container.digest:
            self.digests.write(identity_of(status), container.digest)
        return container

    def write(
        self,
        key: str,
        document: dict[str, Json],
        blobs: Sequence[Blob] = (),
        check: Callable[[], None] | None = None,
    ) -> None:
        """Writes an entry; warns if the disk is full or not writable.

        Args:
            check: function that raises if `blobs` changed while they were written; then no file is
                kept.
        """
        try:
            path = self._path(key)
            named = {**document, _KEY: key}
            sha256 = write_container(path, named, blobs, check=check, mode=0o600)
            status = path.stat()
            if status.st_size >= _LARGE_BYTES:
                self.digests.write(identity_of(status), sha256)
            self._prune()
        except OSError as error:
            _warn_once(f"nothing is cached: '{self.folder}' cannot be written: {error.strerror}")

    def delete(self, key: str) -> None:
        """Deletes an entry, if it exists and can be deleted."""
        _delete(self._path(key))

    def clear(self) -> None:
        """Deletes all entries that can be deleted."""
        for entry in self.entries():
            _delete(entry.path)

    def entries(self) -> list[CacheEntry]:
        """Returns all files, including unfinished ones; least recently used files come first."""
        found: list[CacheEntry] = []
        for path in self.folder.glob(f"*{_SUFFIX}*"):
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
            if entry.is_abandoned or (entry.is_complete and excess > 0):
                _delete(entry.path)
                excess -= entry.size


@dataclass(frozen=True)
class FileDigests:
    """Digests of models, of data files and of the cache's own large files, as entries of the cache.

    A file has the same content as long as its status is the same, so it is hashed once.
    """

    cache: Cache

    def of(self, file: BufferedReader) -> str:
        """Returns the SHA-256 of an open file; keeps that of a large, settled file."""
        status = os.fstat(file.fileno())
        identity = identity_of(status)
        may_be_known = status.st_size >= _LARGE_BYTES and is_settled(status, time.time())
        found = self.read(identity) if may_be_known else None
        if found is not None:
            return found
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if may_be_known and identity_of(os.fstat(file.fileno())) == identity:
            self.write(identity, sha256)
        return sha256

    def read(self, identity: tuple[int, ...]) -> str | None:
        """Returns the digest of a file, or `None` if it is not known."""
        container = self.cache.read(self._key(identity))
        found = None if container is None else container.document.get("sha256")
        return found if isinstance(found, str) else None

    def write(self, identity: tuple[int, ...], sha256: str) -> None:
        """Stores the digest of a file, unless the folder is only read."""
        if os.access(self.cache.folder, os.W_OK):
            self.cache.write(self._key(identity), {"sha256": sha256})

    def _key(self, identity: tuple[int, ...]) -> str:
        return hashlib.sha256(repr(("file", *identity)).encode()).hexdigest()


def is_switched_on(kept: Kept) -> bool:
    """True if the cache is on by default for `kept`.

    Raises:
        ByocError: `$BYOC_CACHE` has a value that is not accepted.
    """
    word = os.environ.get(SWITCH_VARIABLE) or "on"
    if word not in ("on", "calibration", "off"):
        raise ByocError(
            f"{SWITCH_VARIABLE} is {word!r}, accepted are 'on', 'calibration' and 'off'"
        )
    return word in ("on", kept)


def users_folder() -> Path:
    """Returns the user's cache folder for this package.

    Raises:
        ByocError: the user has no home directory.
    """
    from platformdirs import user_cache_path

    folder = user_cache_path("byoc_mlir", appauthor=False)
    if not folder.is_absolute():
        raise ByocError("this user has no home, and so no folder for a cache")
    return folder


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def own_folder(folder: Path) -> Path:
    """Creates the folder if it is missing, and returns it.

    Raises:
        UnsafeCacheError: the folder belongs to another user, or others may write to it.
        ByocError: the folder cannot be created.
    """
    folder = folder.absolute()  # the process may go to another one
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise ByocError(f"the cache folder '{folder}' cannot be made: {error.strerror}") from error
    if not _is_own(status):
        raise UnsafeCacheError(
            f"the cache folder '{folder}' belongs to somebody else, or others may write to it;"
            " `chmod go-w` it, or choose another one"
        )
    return folder


@cache
def _warn_once(text: str) -> None:
    """Warns once in a process, because each model would repeat the warning."""
    warn_user(text)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        warn_user(f"'{path}' cannot be deleted from the cache: {error}")


def _limit() -> int:
    text = os.environ.get(SIZE_VARIABLE, "")
    if not text:
        return DEFAULT_BYTES
    try:
        return int(text)
    except ValueError:
        raise ByocError(f"{SIZE_VARIABLE} is {text!r}, expected a number of bytes") from None
