"""Shared objects that compiled code calls."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from byoc_mlir.errors import ExecutionError, IncompatibleArtifactError
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.runtime.program import IsaSwitch, SharedLibrary
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.runtime.system.overload import watch_spinning
from byoc_mlir.runtime.system.spins import spins
from byoc_mlir.runtime.system.threads import OPENMP, loaded_openmp


def prepare_openmp_environment() -> None:
    """Sets environment variables that OpenMP reads when its library loads; variables that the user
    has set take precedence.

    A thread without work spins for a moment (long enough for the next loop of the same run) and
    then sleeps, so that other processes on the same cores do not stall every run. If another
    package has loaded the library already, its threads are watched instead.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}.isdisjoint(os.environ):
        return
    os.environ["GOMP_SPINCOUNT"] = str(spins())
    openmp = loaded_openmp()
    if openmp is not None:
        watch_spinning(openmp)


@cache
def load_library(path: Path) -> ctypes.CDLL:
    """Returns the library at `path`, or with that name for the dynamic loader; it stays loaded.

    Raises:
        ExecutionError: the library cannot be loaded.
    """
    prepare_openmp_environment()
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ExecutionError(f"cannot load {path}: {error}; is it installed?") from error


def load_shared_library(library: SharedLibrary) -> ctypes.CDLL:
    """Returns a library for compiled code, restricted to the instructions of `BYOC_MAX_ISA`.

    It stays loaded. Its environment variable overrides its path.

    Raises:
        ExecutionError: the library cannot be loaded, or its version is not accepted.
    """
    path = _chosen(library) or library.path
    handle = load_library(path)
    problem = _version_problem(library, handle, path)
    if problem is not None:
        raise ExecutionError(f"the model needs {library.path.name}: {problem}{_hint(library)}")
    if library.isa_switch is not None:
        limit_isa(handle, library.isa_switch)
    return handle


def limit_isa(handle: ctypes.CDLL, switch: IsaSwitch) -> None:
    """Restricts a library to the instructions of `BYOC_MAX_ISA`, unless the user has restricted it
    already.

    The restriction does not affect a library that is already in use.
    """
    level = Cpu.limit()
    if level is None or any(name in os.environ for name in switch.environment):
        return
    handle[switch.function](ctypes.c_int(dict(switch.values)[level]))


def find_openmp() -> Path | None:
    """Returns the OpenMP runtime that host loops share with oneDNN, or None if there is none."""
    name = Path(OPENMP)
    try:
        load_library(name)
    except ExecutionError:
        return None
    return name


def resolve_symbol(name: str, libraries: Sequence[ctypes.CDLL]) -> int:
    """Returns the address of a function in the first library that defines it, else in the process.

    Raises:
        ExecutionError: the function is not defined.
    """
    for library in (*libraries, _process(), *open_system_libraries()):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(library, name))
        except ValueError:
            continue
    raise ExecutionError(
        f"no library defines the function '{name}' that the compiled code calls;"
        " a library of another version than at compile time?"
    )


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def open_system_libraries() -> tuple[ctypes.CDLL, ...]:
    """Returns the C library and its maths library; empty if they have other names."""
    found: list[ctypes.CDLL] = []
    for name in ("libc.so.6", "libm.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue  # not glibc
    return tuple(found)


def load_own_library(library: Path | bytes) -> ctypes.CDLL:
    """Loads a library that is part of a region, from its file or its content; it stays loaded.

    Raises:
        ExecutionError: the library cannot be loaded.
    """
    if isinstance(library, Path):
        return load_library(library)
    descriptor = os.memfd_create("byoc_library")  # stays open: its number is the library's name
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(library)
    return load_library(Path(f"/proc/self/fd/{descriptor}"))


def located(library: SharedLibrary, folder: Path) -> SharedLibrary:
    """Locates a library on this machine, for code that was compiled before, perhaps elsewhere.

    The path in its environment variable is the only candidate, if it is set. Otherwise the
    candidates are its former path, `folder`, the files of this Python's packages and of the
    library's wheels, and the dynamic loader's paths.

    Raises:
        IncompatibleArtifactError: no candidate exists, or none has an accepted version.
    """
    problems: list[str] = []
    for path in _candidates(library, folder):
        try:
            handle = load_library(path)
        except ExecutionError as error:
            problems.append(str(error))
            continue
        problem = _version_problem(library, handle, path)
        if problem is None:
            return replace(library, path=path)
        problems.append(problem)
    raise IncompatibleArtifactError(
        f"the model needs {library.path.name}: {'; '.join(dict.fromkeys(problems))}{_hint(library)}"
    )


def _hint(library: SharedLibrary) -> str:
    return f"; or name another one in {library.environment}" if library.environment else ""


def _chosen(library: SharedLibrary) -> Path | None:
    """Returns the file that the library's environment variable names, if it is set."""
    chosen = os.environ.get(library.environment, "") if library.environment else ""
    return Path(chosen) if chosen else None


def _candidates(library: SharedLibrary, folder: Path) -> Iterator[Path]:
    chosen = _chosen(library)
    if chosen is not None:
        yield chosen
        return
    name = library.path.name
    for path in (library.path, folder / name, Path(sys.prefix, "lib", name)):
        if path.is_absolute() and path.is_file():
            yield path
    for wheel in library.wheels:
        path = library_in_wheel(wheel, name)
        if path is not None:
            yield path
    yield Path(name)


def _version_problem(library: SharedLibrary, handle: ctypes.CDLL, path: Path) -> str | None:
    if not library.version_function:
        return None
    try:
        function = handle[library.version_function]
    except AttributeError:
        return f"{path} has no function {library.version_function}"
    function.restype = ctypes.POINTER(ctypes.c_int * 3)
    found = tuple(function().contents)
    if found[0] == library.version[0] and found >= library.version:
        return None
    wanted = ".".join(map(str, library.version))
    return (
        f"{path} has version {'.'.join(map(str, found))}, needed is {wanted} or a later"
        f" {library.version[0]}.x"
    )
