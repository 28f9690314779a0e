"""Compiling the C source that backends generate."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from byoc_mlir.backends.base import CSource
from byoc_mlir.errors import BackendError
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system.cpu import Cpu

_FLAGS = ("-shared", "-fPIC", "-Werror=return-type", "-Werror=implicit-function-declaration")
"""A forgotten `return 0` or prototype would be undefined behaviour."""

_ALL_DEFINED = ("-Wl,-z,defs",) if sys.platform == "linux" else ()
"""A function that no library defines is found here, and not when the model is loaded."""


def compile_c(code: CSource, symbol: str) -> Path:
    """The shared object of C source; the same source and flags are compiled once per process.

    Args:
        code: the source, and what to compile it with.
        symbol: of the region that it is for, for the error message.

    Raises:
        BackendError: there is no C compiler, or it refuses the source.
    """
    compiler = find_c_compiler()
    options = [*_FLAGS, *_ALL_DEFINED, *code.flags, *_isa_flags()]
    libraries = [text for path in code.libraries for text in _linked(path)]
    key = hashlib.sha256(repr((code.source, options, libraries, compiler)).encode()).hexdigest()
    library = _build_directory() / f"{key[:32]}.so"
    if library.exists():
        return library
    source = library.with_suffix(".c")
    source.write_text(code.source)
    unfinished = library.with_suffix(".tmp")
    command = [*compiler, *options, str(source), *libraries, "-lm", "-o", str(unfinished)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BackendError(f"the C compiler refused region @{symbol}:\n{result.stderr.strip()}")
    unfinished.rename(library)
    return library


def _isa_flags() -> list[str]:
    """What keeps `-march=native` to the instructions of `BYOC_MAX_ISA`."""
    forbidden = set(Cpu.machine().features) - set(Cpu.host().features)
    return [f"-mno-{feature}" for feature in ("avx", "avx512f") if feature in forbidden]


def _linked(library: Path | SharedLibrary) -> tuple[str, str]:
    path = library.path if isinstance(library, SharedLibrary) else library
    return str(path), f"-Wl,-rpath,{path.parent}"


def no_c_compiler() -> str | None:
    """Why C cannot be compiled here and what to do about it, or `None`."""
    try:
        find_c_compiler()
    except BackendError as error:
        return str(error)
    return None


def find_c_compiler() -> tuple[str, ...]:
    """The command that compiles C: `$CC`, or the first of cc, gcc and clang.

    Raises:
        BackendError: there is none.
    """
    command = shlex.split(os.environ.get("CC", ""))
    for name in command[:1] or ("cc", "gcc", "clang"):
        if shutil.which(name):
            return tuple(command) or (name,)
    wanted = f"CC names '{command[0]}', which is not there" if command else "there is none"
    raise BackendError(f"a C compiler is needed, and {wanted}; install cc, gcc or clang, or set CC")


@cache
def _build_directory() -> Path:
    directory = tempfile.TemporaryDirectory(prefix="byoc_mlir_")
    _kept.append(directory)
    return Path(directory.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends
