"""The code of an artifact: a shared object that holds everything, weights included."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

from byoc_mlir.errors import ExecutionError, IncompatibleArtifactError
from byoc_mlir.runtime.forks import ForkSafeLock

TABLE_SYMBOL = "byoc_artifact"
"""The one symbol beside the C functions that an artifact exports; glue.c defines the structure."""

_COPY_BYTES = 1 << 24


class _Table(ctypes.Structure):
    """`struct byoc_artifact`."""

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


@dataclass(frozen=True)
class SharedCode:
    """Code in an artifact's file, which must be open while it is loaded."""

    file: BinaryIO
    name: str
    content: memoryview
    """All of the file, also when it is closed."""

    @property
    def size(self) -> int:
        return self.content.nbytes

    def load(self, symbols: Mapping[str, int], threads: int) -> SharedModule:
        """Loads the code.

        Args:
            symbols: the addresses of all functions that the code imports.
            threads: OpenMP threads of a run.

        Raises:
            ExecutionError: it cannot be loaded, or imports what `symbols` does not have.
        """
        return SharedModule(self, symbols, threads)


class SharedModule:
    """A loaded artifact. Every instance has tables of its own, as imports may differ."""

    def __init__(self, code: SharedCode, symbols: Mapping[str, int], threads: int):
        self._image = _Image(code.file)
        try:
            self._handle = ctypes.CDLL(self._image.path)
            self._table = _Table.in_dll(self._handle, TABLE_SYMBOL)
        except (OSError, ValueError) as error:
            self._image.close()
            raise IncompatibleArtifactError(f"'{code.name}' cannot be loaded: {error}") from error
        table = self._table
        for index in range(table.import_count):
            name = (table.import_names[index] or b"").decode()
            if name not in symbols:
                raise ExecutionError(f"'{code.name}' imports the unknown function '{name}'")
            table.imports[index] = symbols[name]
        table.threads[0] = threads

    def address(self, entry_point: str) -> int:
        """The address of `byoc_load` and so on."""
        return cast(int, getattr(self._table, entry_point.removeprefix("byoc_")))

    def close(self) -> None:
        """Unloads the code. Nothing may call into it from here on."""
        _dlclose(self._handle)
        self._image.close()


class _Image:
    """A path by which the dynamic loader maps a file once for each instance.

    The loader knows files by name and inode, and gives out a mapped file again. The first instance
    maps the artifact itself, so that processes share its pages; others map a copy in memory.
    """

    _mapped: set[tuple[int, int]] = set()
    _lock = ForkSafeLock()

    def __init__(self, file: BinaryIO):
        status = os.fstat(file.fileno())
        self._inode = (status.st_dev, status.st_ino)
        with self._lock:
            is_first = self._inode not in self._mapped
            if is_first:
                self._mapped.add(self._inode)
        self._is_first = is_first
        self._descriptor = os.dup(file.fileno()) if is_first else _copy(file)
        self.path = f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        os.close(self._descriptor)
        if self._is_first:
            with self._lock:
                self._mapped.discard(self._inode)


def _copy(file: BinaryIO) -> int:
    descriptor = os.memfd_create("byoc_artifact")
    size, offset = os.fstat(file.fileno()).st_size, 0
    while offset < size:
        offset += os.sendfile(descriptor, file.fileno(), offset, min(_COPY_BYTES, size - offset))
    return descriptor


def _dlclose(handle: ctypes.CDLL) -> None:
    function = ctypes.CDLL(None).dlclose
    function.argtypes = (ctypes.c_void_p,)
    function(handle._handle)  # pyright: ignore[reportPrivateUsage]
