"""Compilation of the C source that backends generate."""

from __future__ import annotations

import atexit
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
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system.cpu import Cpu

_FLAGS = ("-shared", "-fPIC", "-Werror=return-type", "-Werror=implicit-function-declaration")
"""Flags that make a missing `return` or prototype, which is undefined behaviour, an error."""

_ALL_DEFINED = ("-Wl,-z,defs",) if sys.platform == "linux" else ()
"""Linker flags that report undefined functions at compile time instead of when the model is
loaded.
"""

_making_directory = ForkSafeLock()


def compile_c(code: CSource, symbol: str) -> Path:
    """Compiles C source to a shared object, once per process for the same source and flags.

    Args:
        code: the source, its flags and its libraries.
        symbol: symbol of the region, for the error message.

    Raises:
        BackendError: there is no C compiler, or it refuses the source.
    """
    compiler = find_c_compiler()
    options = [*_FLAGS, *_ALL_DEFINED, *code.flags, *_isa_flags()]
    libraries = [text for path in code.libraries for text in _linked(path)]
    key = hashlib.sha256(repr((code.source, options, libraries, compiler)).encode()).hexdigest()
    with _making_directory:  # a cache alone lets several threads make one
        directory = _build_directory(os.getpid())
    library = directory / f"{key[:32]}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=directory) as own:  # other threads may compile the same
        source, unfinished = Path(own, "region.c"), Path(own, "region.so")
        source.write_text(code.source)
        command = [*compiler, *options, str(source), *libraries, "-lm", "-o", str(unfinished)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            said = result.stderr.strip()
            raise BackendError(f"the C compiler refused region @{symbol}:\n{said}")
        unfinished.replace(library)
    return library


def _isa_flags() -> list[str]:
    """Returns compiler flags that restrict `-march=native` to the instructions of
    `BYOC_MAX_ISA`.
    """
    forbidden = set(Cpu.machine().features) - set(Cpu.host().features)
    return [f"-mno-{feature}" for feature in ("avx", "avx512f") if feature in forbidden]


def _linked(library: Path | SharedLibrary) -> tuple[str, ...]:
    """Returns the linker arguments for a library; the linker searches for a bare file name."""
    path = library.path if isinstance(library, SharedLibrary) else library
    if len(path.parts) == 1:
        return (f"-l:{path}",)
    return str(path.absolute()), f"-Wl,-rpath,{path.absolute().parent}"


def no_c_compiler() -> str | None:
    """Returns why C cannot be compiled here and what to do about it, or `None`."""
    try:
        find_c_compiler()
    except BackendError as error:
        return str(error)
    return None


def find_c_compiler() -> tuple[str, ...]:
    """Returns the command that compiles C: `$CC`, or the first of cc, gcc and clang.

    Raises:
        BackendError: there is no C compiler.
    """
    command = shlex.split(os.environ.get("CC", ""))
    for name in command[:1] or ("cc", "gcc", "clang"):
        if shutil.which(name):
            return tuple(command) or (name,)
    wanted = f"CC names '{command[0]}', which is not there" if command else "there is none"
    raise BackendError(f"a C compiler is needed, and {wanted}; install cc, gcc or clang, or set CC")


@cache
def _build_directory(process: int) -> Path:
    """Returns the folder for the shared objects of a process; a forked child has its own folder."""
    folder = Path(tempfile.mkdtemp(prefix="byoc_mlir_"))
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
