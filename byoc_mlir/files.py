"""Opening of files that a caller names, regular ones only, so that none blocks or never ends; and
their identity.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL
from io import BufferedReader
from pathlib import Path

from byoc_mlir.errors import ByocError

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_WRITTEN_BACK_SECONDS = 60.0
"""Seconds after which a change by a mapping of a file must be in its time stamps: Linux writes
pages back after 30."""


def open_regular(path: str | Path, flags: int = 0) -> BufferedReader:
    """Opens a regular file for reading.

    Args:
        flags: further flags of `os.open`.

    Raises:
        OSError: there is no such file, it cannot be read, or is no regular file.
    """
    # not to wait for the writer of a pipe
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | flags)
    except ValueError as error:  # a null character or a lone surrogate
        raise OSError(EINVAL, f"it is no path: {error}", str(path)) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(EINVAL, f"it is {kind}, accepted are regular files", str(path))
    return os.fdopen(descriptor, "rb")


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Returns numbers of a file's status; a change of the content changes one of them."""
    numbers = (status.st_dev, status.st_ino, status.st_size)
    return (*numbers, status.st_mtime_ns, status.st_ctime_ns)


def is_settled(status: os.stat_result, seconds: float) -> bool:
    """True if a file's last change came so long before a time, in seconds since the epoch, that its
    status would tell a later one.
    """
    return status.st_ctime < seconds - _WRITTEN_BACK_SECONDS


def open_file(path: str | Path, error: type[ByocError]) -> BufferedReader:
    """Opens a regular file for reading.

    Raises:
        ByocError: of the class given, when `open_regular` raises an `OSError`.
    """
    try:
        return open_regular(path)
    except OSError as reason:
        raise error(f"'{path}' cannot be read: {reason.strerror}") from reason


def read_file(path: str | Path, error: type[ByocError]) -> bytes:
    """Reads a regular file.

    Raises:
        ByocError: as `open_file`.
    """
    with open_file(path, error) as file:
        return file.read()
