"""File format of artifacts and of the cache: blocks of bytes, a JSON document, a footer.

```
content    anything: the ELF image of a shared object, or nothing
blobs      each aligned to 64 bytes
document   JSON, UTF-8: {"blobs": [[offset, length], …], "content": {…}}
footer     64 bytes: magic, format version, offset and length of the document, SHA-256
```

The hash covers all bytes before it. No content of a file is used, and no code of it runs, before
the hash is verified.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import secrets
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.runtime.files.serialise import Blob, Json
from byoc_mlir.runtime.system.memory import ask_for_huge_pages, remember
from byoc_mlir.runtime.system.threads import run_beside

FORMAT_VERSION = 8
MAGIC = b"BYOCMLIR"

_HEAD = struct.Struct("<8sQQQ")
_HASH_BYTES = 32
FOOTER_BYTES = _HEAD.size + _HASH_BYTES
_ALIGNMENT = 64
_CHUNK = 1 << 22
"""Bytes of a piece, two huge pages: larger pieces are no faster, and take memory while a program is
written."""
_WORTH_A_THREAD = 1 << 20
"""Minimum number of bytes for hashing on another thread during the write: hashing them takes much
longer than starting a thread."""


@dataclass(frozen=True)
class Container:
    """Content of a file whose hash was verified."""

    document: dict[str, Json]
    blobs: tuple[memoryview, ...]
    """Views of the file, which stays mapped while one of them is alive."""
    file: memoryview
    """Whole file."""
    digest: str
    """SHA-256 of the file's content."""


def write_container(
    path: Path,
    document: dict[str, Json],
    blobs: Sequence[Blob],
    content: BinaryIO | None = None,
    *,
    check: Callable[[], None] | None = None,
    mode: int = 0o666,
) -> str:
    """Writes a file atomically: it appears with all its content, or not at all.

    Args:
        content: a file whose bytes are written first.
        check: function that is called before the file appears; if it raises, the file does not
            appear.
        mode: mode of the file, before the process' `umask`.

    Returns:
        The digest of the content, as `Container.digest`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            hashing = _HashingFile(file)
            _write(hashing, document, blobs, content)
        if check is not None:
            check()
        unfinished.replace(path)
        return hashing.hash.hexdigest()
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def container_bytes(document: dict[str, Json], blobs: Sequence[Blob]) -> bytes:
    """Returns the bytes that `write_container` would write."""
    buffer = io.BytesIO()
    _write(_HashingFile(buffer), document, blobs, None)
    return buffer.getvalue()


def read_container(file: BinaryIO, name: str, known: str | None = None) -> Container:
    """Reads and checks a file.

    Args:
        name: name of the file in errors.
        known: digest that the file's content is known to have; it is not hashed again then.

    Raises:
        InvalidArtifactError: the file is truncated, altered, of another format version, or no
            artifact.
    """
    size = os.fstat(file.fileno()).st_size
    if size < FOOTER_BYTES:
        raise InvalidArtifactError(f"'{name}' {_NOT_ONE}")
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    ask_for_huge_pages(mapped)
    remember(mapped)
    data = memoryview(mapped)
    magic, version, offset, length = _HEAD.unpack(data[-FOOTER_BYTES:-_HASH_BYTES])
    if magic != MAGIC:
        raise InvalidArtifactError(f"'{name}' {_NOT_ONE}")
    if version != FORMAT_VERSION:
        raise InvalidArtifactError(
            f"'{name}' has format version {version}, this byoc_mlir reads version"
            f" {FORMAT_VERSION}; export the model again"
        )
    recorded = bytes(data[-_HASH_BYTES:])
    if known != recorded.hex() and hashlib.sha256(data[:-_HASH_BYTES]).digest() != recorded:
        raise InvalidArtifactError(
            f"'{name}' was altered after it was written: its SHA-256 is not the recorded one;"
            " copy or export it again"
        )
    if offset + length != size - FOOTER_BYTES:
        raise InvalidArtifactError(f"'{name}' has a document that is not where it should be")
    document = _parse(data[offset : offset + length], name)
    content = document.get("content")
    if not isinstance(content, dict):
        raise InvalidArtifactError(f"'{name}' has a document without content")
    return Container(content, _blobs(document, data[:offset], name), data, recorded.hex())


_NOT_ONE = (
    "is not a compiled model of byoc_mlir, or a truncated or stripped one: it does not end in the"
    " footer that `export_library` writes; export the model again"
)


class _HashingFile:
    """Writer of a file and its hash, in large pieces that are aligned to huge pages.

    The page cache of such a file can be mapped in huge pages, which are faster to read.
    """

    def __init__(self, file: BinaryIO):
        self._file = file
        self._piece = memoryview(mmap.mmap(-1, _CHUNK))
        """Buffer that is refilled for each piece: fresh memory costs more than the copy into it."""
        self._filled = 0
        self.hash = hashlib.sha256()
        self.position = 0

    def write(self, data: Blob) -> None:
        if len(data) < _WORTH_A_THREAD:
            self.hash.update(data)
            self._write(data)
        else:
            run_beside(lambda: self.hash.update(data), lambda: self._write(data))

    def _write(self, data: Blob) -> None:
        self.position += len(data)
        rest = memoryview(data)
        while rest:
            taken = rest[: _CHUNK - self._filled]
            rest = rest[len(taken) :]
            if len(taken) == _CHUNK:  # nothing waits before it
                self._file.write(taken)
                continue
            self._piece[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            if self._filled == _CHUNK:
                self._file.write(self._piece)
                self._filled = 0

    def align(self) -> None:
        self.write(bytes(-self.position % _ALIGNMENT))

    def finish(self) -> None:
        self._file.write(self._piece[: self._filled])
        self._file.write(self.hash.digest())


def _write(
    file: _HashingFile,
    document: dict[str, Json],
    blobs: Sequence[Blob],
    content: BinaryIO | None,
) -> None:
    while content is not None and (chunk := content.read(_CHUNK)):
        file.write(chunk)
    places: list[Json] = []
    for blob in blobs:
        file.align()
        places.append([file.position, len(blob)])
        file.write(blob)
    file.align()
    text = json.dumps({"blobs": places, "content": document}, ensure_ascii=False).encode()
    offset = file.position
    file.write(text)
    file.write(_HEAD.pack(MAGIC, FORMAT_VERSION, offset, len(text)))
    file.finish()


def _parse(text: memoryview, name: str) -> dict[str, Json]:
    try:
        document: Json = json.loads(bytes(text))
    except (ValueError, RecursionError) as error:
        raise InvalidArtifactError(f"'{name}' has a document that is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidArtifactError(f"'{name}' has a document that is not an object")
    return document


def _blobs(document: dict[str, Json], data: memoryview, name: str) -> tuple[memoryview, ...]:
    places = document.get("blobs")
    views: list[memoryview] = []
    for place in places if isinstance(places, list) else []:
        match place:
            case [int(offset), int(length)] if 0 <= offset <= offset + length <= len(data):
                views.append(data[offset : offset + length])
            case _:
                raise InvalidArtifactError(f"'{name}' has a block of bytes at {place}")
    return tuple(views)
