"""Code of an artifact: a shared object that contains code, weights and tables."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

from byoc_mlir.errors import (
    ExecutionError,
    IncompatibleArtifactError,
    InvalidArtifactError,
)
from byoc_mlir.locks import ForkSafeLock

TABLE_SYMBOL = "byoc_artifact"
"""Symbol that an artifact exports besides the C functions; with several programs, the prefix of
their symbols."""


def program_table(number: int) -> str:
    """Returns the symbol of a program's table, which glue.c defines; the first program is
    number 0.
    """
    return f"{TABLE_SYMBOL}_{number}" if number else TABLE_SYMBOL


_COPY_BYTES = 1 << 24


class _Table(ctypes.Structure):
    """Layout of `struct byoc_artifact`."""

    _fields_ = (
        ("load", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("close", ctypes.c_void_p),
        ("unload", ctypes.c_void_p),
        ("threads", ctypes.POINTER(ctypes.c_int32)),
        ("import_count", ctypes.c_int64),
        ("import_names", ctypes.POINTER(ctypes.c_char_p)),
        ("imports", ctypes.POINTER(ctypes.c_void_p)),
    )


class SharedFile:
    """File of an artifact, which must be open while its code is loaded."""

    def __init__(self, file: BinaryIO, name: str, content: memoryview):
        self.name = name
        self.content = content
        """Bytes of the whole file, valid even after it is closed."""
        self._file = file
        self._image: _Image | None = None

    def image(self, table: str) -> _Image:
        """Returns an image of the file in which no other instance uses this table.

        Each instance has its own tables, as imports may differ.
        """
        with _Image.lock:
            if self._image is None or not self._image.tables or table in self._image.tables:
                self._image = _Image(self._file)
            self._image.tables.add(table)
            return self._image


@dataclass(frozen=True)
class SharedCode:
    """Code in an artifact."""

    file: SharedFile
    table: str
    """Symbol of its table."""

    @property
    def content(self) -> memoryview:
        """Returns the bytes of the whole file."""
        return self.file.content

    @property
    def size(self) -> int:
        return self.content.nbytes

    def load(self, symbols: Mapping[str, int], threads: int) -> SharedModule:
        """Loads the code.

        Args:
            symbols: the address of each function that the code imports.
            threads: OpenMP threads of a run.

        Raises:
            ExecutionError: the code cannot be loaded, or imports a function that `symbols` lacks.
        """
        return SharedModule(self, symbols, threads)


class SharedModule:
    """Loaded code of an artifact."""

    def __init__(self, code: SharedCode, symbols: Mapping[str, int], threads: int):
        self._image = code.file.image(code.table)
        self._name, name = code.table, code.file.name
        try:
            self._handle = ctypes.CDLL(self._image.path)
            self._table = _Table.in_dll(self._handle, code.table)
        except (OSError, ValueError) as error:
            self._image.close(code.table)
            raise IncompatibleArtifactError(f"'{name}' cannot be loaded: {error}") from error
        table = self._table
        for index in range(table.import_count):
            function = (table.import_names[index] or b"").decode()
            if function not in symbols:
                raise ExecutionError(f"'{name}' imports the unknown function '{function}'")
            table.imports[index] = symbols[function]
        table.threads[0] = threads

    def address(self, entry_point: str) -> int:
        """Returns the address of an entry point such as `byoc_load`."""
        return cast(int, getattr(self._table, entry_point.removeprefix("byoc_")))

    def close(self) -> None:
        """Unloads the code. No call may use it afterwards."""
        _dlclose(self._handle)
        self._image.close(self._name)


class _Image:
    """Path by which the dynamic loader maps a file once for each instance.

    The loader identifies files by name and inode, and returns a mapped file again. The first
    instance maps the artifact itself, so that processes share its pages; further ones map a copy in
    memory.
    """

    _mapped: set[tuple[int, int]] = set()
    _numbers = itertools.count(1)
    lock = ForkSafeLock()
    """Lock that is held while images are created, and while their use begins or ends."""

    def __init__(self, file: BinaryIO):
        status = os.fstat(file.fileno())
        self._inode = (status.st_dev, status.st_ino)
        with self.lock:
            is_first = self._inode not in self._mapped
            if is_first:
                self._mapped.add(self._inode)
        self._is_first = is_first
        self._descriptor = os.dup(file.fileno()) if is_first else _copy(file)
        self.path = f"/proc/self/fd/{_spelled(next(self._numbers))}{self._descriptor}"
        self.tables: set[str] = set()
        """Tables in use."""

    def close(self, table: str) -> None:
        """Ends the use of a table; the last use frees the image."""
        with self.lock:
            self.tables.remove(table)
            if self.tables:
                return
            os.close(self._descriptor)
            if self._is_first:
                self._mapped.discard(self._inode)


def _spelled(number: int) -> str:
    """Returns a part of a path that encodes a number but does not change the path's meaning:
    `/././/` is 1001.

    The loader recognises a loaded file by all paths under which it was opened, and file descriptors
    are reused. So each image needs a path that was never used before.
    """
    return "".join("/" if bit == "1" else "./" for bit in f"{number:b}")


def _copy(file: BinaryIO) -> int:
    descriptor = os.memfd_create("byoc_artifact")
    size, offset = os.fstat(file.fileno()).st_size, 0
    while offset < size:
        sent = os.sendfile(descriptor, file.fileno(), offset, min(_COPY_BYTES, size - offset))
        if not sent:  # another program has truncated it
            os.close(descriptor)
            raise InvalidArtifactError(
                f"'{file.name}' ends after {offset} of its {size} bytes; write it anew"
            )
        offset += sent
    return descriptor


def _dlclose(handle: ctypes.CDLL) -> None:
    function = ctypes.CDLL(None).dlclose
    function.argtypes = (ctypes.c_void_p,)
    function(handle._handle)  # pyright: ignore[reportPrivateUsage]
