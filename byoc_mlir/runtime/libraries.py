"""Shared objects that compiled code calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.threads import prepare_openmp_environment


def load_library(path: Path) -> ctypes.CDLL:
    """The library at `path` (or known to the loader by that name); it stays loaded.

    Raises:
        ExecutionError: it cannot be loaded.
    """
    prepare_openmp_environment()
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ExecutionError(f"cannot load {path}: {error}; is it installed?") from error


def find_openmp() -> Path | None:
    """The OpenMP runtime that host loops share with oneDNN, `None` when there is none."""
    name = Path("libgomp.so.1")
    try:
        load_library(name)
    except ExecutionError:
        return None
    return name


def resolve_symbol(name: str, libraries: Sequence[ctypes.CDLL]) -> int:
    """The address of a function: the first library that defines it, then the process itself.

    Raises:
        ExecutionError: nobody defines it.
    """
    for library in (*libraries, *_process_libraries()):
        try:
            address = ctypes.cast(library[name], ctypes.c_void_p).value
        except AttributeError:
            continue
        if address is not None:
            return address
    raise ExecutionError(
        f"no library defines the function '{name}' that the compiled code calls;"
        " a library of another version than at compile time?"
    )


def _process_libraries() -> list[ctypes.CDLL]:
    libm = "libm.so.6"
    try:
        return [ctypes.CDLL(None), ctypes.CDLL(libm)]
    except OSError:
        return [ctypes.CDLL(None)]  # not glibc: the process has the maths functions itself
