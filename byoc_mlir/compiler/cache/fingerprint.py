"""Dependencies of a compilation as text to hash, without importing the compiler."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.installed import installed_points, installed_version
from byoc_mlir.runtime.files.serialise import array_bytes
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.runtime.system.libraries import find_openmp

_PACKAGES = ("xdsl", "llvmlite", "onnx", "numpy", "ml_dtypes")
_VERSIONED = frozenset((*_PACKAGES, *sys.stdlib_module_names))
"""Modules whose version identifies their content."""

_OPS = "byoc_mlir.ops"
_ENTRY_POINTS = ("byoc_mlir.backends", "byoc_mlir.devices", "byoc_mlir.passes", _OPS)

_REGISTRIES = (
    ("byoc_mlir.backends.registry", "registered_backends"),
    ("byoc_mlir.devices.registry", "registered_devices"),
    ("byoc_mlir.compiler.user_passes", "registered_passes"),
)
"""Registries of classes: their modules, and functions that return the classes by name."""

_BYTECODE_FOLDER = "__pycache__"


def model_digest(model: object) -> str | None:
    """Returns the hash of an ONNX model in any form, `None` for other models.

    The hash does not include external data.

    Raises:
        InvalidModelError: the file cannot be read.
    """
    found = model if isinstance(model, Snapshot) else Snapshot.found(model)
    return None if found is None else found.digest


def array_digest(array: Array) -> str:
    """Returns the SHA-256 of an array's bytes."""
    return hashlib.sha256(array_bytes(array)).hexdigest()


def digest(*parts: Any) -> str:
    """Returns a hash of values that JSON can represent."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def machine_and_software() -> Sequence[Any] | None:
    """Returns the dependencies that all compilations share: the machine, and installed software.

    Returns:
        A value that JSON can represent; `None` if the source file of a registered class or of an
        op's importer is unknown.
    """
    software, classes, importers = _software(), _registered_classes(), _registered_importers()
    if software is None or classes is None or importers is None:
        return None
    cpu = Cpu.host()
    return [
        *software,
        [cpu.architecture, *cpu.features],
        str(find_openmp()),
        classes,
        importers,
    ]


def has_registered() -> bool:
    """True if this process has registered backends, devices, passes or importers itself.

    Another process would lack them.
    """
    return bool(_registered_classes() or _registered_importers())


def environment_values(names: Sequence[str]) -> dict[str, str]:
    """Returns the values of the named environment variables that are set."""
    return {name: os.environ[name] for name in sorted(set(names)) if name in os.environ}


def stamp(path: str | Path) -> str:
    """Returns the stamp of a file: its size and modification time as text, or "" if there is no
    such file.
    """
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


@cache
def _software() -> Sequence[Any] | None:
    """Returns versions and sources of installed packages; `None` if a source is unknown."""
    points: list[list[str]] = []
    for point in (one for group in _ENTRY_POINTS for one in installed_points(group)):
        if point.module.startswith("byoc_mlir."):
            continue
        found = _entry_point(point)
        if found is None:
            return None
        points.append(found)
    return [
        sys.version,
        [installed_version(package) for package in _PACKAGES],
        _own_stamps(),
        sorted(points),
    ]


def _entry_point(point: EntryPoint) -> list[str] | None:
    stamps = _module_stamps(point.module)
    if stamps is None:
        return None
    distribution = point.dist
    if distribution is None:
        return [point.name, point.value, digest(stamps)]
    for file in distribution.files or ():
        if file.suffix == ".py":
            path = Path(str(distribution.locate_file(file)))
            stamps.append([str(path), stamp(path)])
    return [point.name, point.value, distribution.name, distribution.version, digest(stamps)]


def _module_stamps(module: str) -> list[list[str]] | None:
    """Returns path and stamp of the source files of a module's outermost package.

    The package is found without importing it; namespace packages do not count. Returns `None` if
    the sources are no files.
    """
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            return []  # nobody can import it
        if spec.origin is not None:
            return _source_stamps(Path(spec.origin))
    return []


def _registered_classes() -> list[Any] | None:
    """Returns the backends, devices and passes that the process itself registered, such as a user's
    script.
    """
    found: list[Any] = []
    for module, function in _REGISTRIES:
        registered = _registered(_asked(module, function) or {})
        if registered is None:
            return None
        found += registered
    return found


def _asked(module: str, function: str) -> Any:
    """Calls a function of a registry, or returns `None` if no code has imported the registry.

    While another thread is importing the registry, it is empty.
    """
    found = getattr(sys.modules.get(module), function, None)
    return None if found is None else found()


def _registered(classes: Mapping[str, type[Any]]) -> list[Any] | None:
    """Returns the given classes by name, with their source files.

    Classes of this package and of installed packages are omitted.
    """
    others = {name: cls for name, cls in classes.items() if not _is_ours(cls)}
    groups = _ENTRY_POINTS if others else ()
    points = (one for group in groups for one in installed_points(group))
    known = {(point.name, _outermost(point.module)) for point in points}
    found: list[Any] = []
    for name, cls in sorted(others.items()):
        if (name, _outermost(cls.__module__)) in known:
            continue
        for part in cls.__mro__:
            if _is_ours(part) or _outermost(part.__module__) in _VERSIONED:
                continue
            source = _source_of(part)
            stamps = None if source is None else _source_stamps(source)
            if stamps is None:
                return None
            places = [_place_of(code) for code in _codes_of(part)]
            found.append([name, part.__qualname__, places, stamps])
    return found


def _registered_importers() -> list[Any] | None:
    """Returns the importers of ONNX ops that the process itself registered.

    Importers of this package and of installed packages are omitted: `_software` covers these.
    """
    found: list[Any] = []
    known = {"byoc_mlir", *(_outermost(point.module) for point in installed_points(_OPS))}
    for op in _asked("byoc_mlir.frontend.registry", "registered_ops") or ():
        if _outermost(op.function.__module__) in known:
            continue
        code = inspect.unwrap(op.function).__code__
        stamps = _source_stamps(Path(code.co_filename))
        if stamps is None:
            return None
        found.append([op.domain, op.op_type, op.since, _place_of(code), stamps])
    return found


def _outermost(module: str) -> str:
    return module.partition(".")[0]


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("byoc_mlir.")


def _source_of(cls: type) -> Path | None:
    """Returns the source file of a class, taken from its functions, since its module may no longer
    exist.
    """
    for code in _codes_of(cls):
        if Path(code.co_filename).is_file():
            return Path(code.co_filename)
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _codes_of(cls: type) -> list[CodeType]:
    """Returns the code objects of a class's own functions."""
    functions: list[Any] = [
        inspect.unwrap(getattr(value, "__func__", value)) for value in vars(cls).values()
    ]
    return [function.__code__ for function in functions if hasattr(function, "__code__")]


def _place_of(code: CodeType) -> str:
    """Returns the file, line and name of a function's definition; the name alone may not be
    unique.
    """
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"


def _source_stamps(file: Path) -> list[list[str]] | None:
    """Returns path and stamp of the source files that belong with a module.

    They are the files of its outermost package, or the modules in its folder. Returns `None` if the
    module is no file, as in an archive.
    """
    file = file.absolute()
    if not file.is_file():
        return None
    package = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        package = folder
    if package is not None:
        return _folder_stamps(package)
    stamps = [[str(path), stamp(path)] for path in {file, *file.parent.glob("*.py")}]
    if file.parent.name not in ("site-packages", "dist-packages"):  # others' packages are there
        for path in file.parent.glob("*/__init__.py"):
            stamps += _folder_stamps(path.parent)
    return sorted(stamps)


def _own_stamps() -> list[list[str]]:
    """Returns path and stamp of this package's source files, or of the archive that contains
    them.
    """
    package = Path(__file__).parents[2]
    if package.is_dir():
        return _folder_stamps(package)
    return [[str(one), stamp(one)] for one in package.parents if one.is_file()]


def _folder_stamps(folder: Path) -> list[list[str]]:
    """Returns path and stamp of all files in a folder, because backends also have C, tables and
    libraries.

    It skips Python's bytecode caches, including temporary files in them.
    """
    found: list[list[str]] = []
    folders = [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != _BYTECODE_FOLDER:
                        folders.append(entry.path)
                elif not entry.name.endswith(".pyc"):
                    found.append([entry.path, stamp(entry.path)])
    return sorted(found)
