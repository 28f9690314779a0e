"""Shared object of a device: driver and kernels, compiled when they are first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from byoc_mlir.backends import CSource
from byoc_mlir.backends.c_compiler import compile_c

FOLDER = Path(__file__).parent
"""Folder with the header that the C code of backends includes."""

_FILES = ("fakenpu.h", "memory.c", "queues.c", "kernels.c")
_SOURCE = "".join(f'#include "{name}"\n' for name in _FILES)


@cache
def library(device: str) -> Path:
    """Returns the shared object of a device, whose functions have the device's name as prefix.

    A program that is saved refers to it, so it is kept under the same path for other processes.

    Raises:
        BackendError: there is no C compiler.
    """
    content = b"".join((FOLDER / name).read_bytes() for name in _FILES)
    folder = _cache_folder() / f"fakenpu-{hashlib.sha256(content).hexdigest()[:16]}"
    kept = folder / f"lib{device}.so"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _copy(compile_c(CSource(_SOURCE, flags(device)), device), kept)
    return kept


def flags(device: str) -> tuple[str, ...]:
    """Returns the compiler's flags for C that includes `fakenpu.h`."""
    return ("-O2", "-pthread", f"-I{FOLDER}", f"-DDEVICE={device}")


def _cache_folder() -> Path:
    named = os.environ.get("BYOC_CACHE_DIR")
    return Path(named) if named else user_cache_path("byoc_mlir")


def _copy(built: Path, kept: Path) -> None:
    """Copies a file so that other processes see all of it or none."""
    with tempfile.TemporaryDirectory(dir=kept.parent) as own:
        unfinished = Path(own, kept.name)
        shutil.copy(built, unfinished)
        unfinished.replace(kept)
