"""What a compilation depends on, as text to be hashed; found without importing the compiler."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from byoc_mlir.files import open_regular
from byoc_mlir.runtime.cpu import Cpu
from byoc_mlir.runtime.libraries import find_openmp
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.serialise import array_bytes

if TYPE_CHECKING:
    from byoc_mlir.backends import Backend

_PACKAGES = ("xdsl", "llvmlite", "onnx", "numpy", "ml_dtypes")
_ENTRY_POINTS = "byoc_mlir.backends"


def model_digest(model: object) -> str | None:
    """The hash of an `.onnx` file, of its bytes, or of a `ModelProto`; `None` for other models.

    External data is not in it.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(model, str | Path):
        return None if Path(model).suffix == ".mlir" else file_digest(Path(model))
    if isinstance(model, bytes):
        return hashlib.sha256(model).hexdigest()
    serialise = getattr(model, "SerializeToString", None)
    if serialise is None:
        return None
    return hashlib.sha256(cast(bytes, serialise(deterministic=True))).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def array_digest(array: Array) -> str:
    """The SHA-256 of an array's bytes."""
    return hashlib.sha256(array_bytes(array)).hexdigest()


def digest(*parts: Any) -> str:
    """A hash of anything that JSON can say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def machine_and_software() -> Sequence[Any] | None:
    """What every compilation depends on, beside the model and the options.

    Returns:
        Something that JSON can say; `None` when a backend's source is unknown.
    """
    registered = _registered_backends()
    if registered is None:
        return None
    cpu = Cpu.host()
    return [
        *_software(),
        [cpu.architecture, *cpu.features],
        str(find_openmp()),
        registered,
    ]


def environment_values(names: Sequence[str]) -> dict[str, str]:
    """The values of those environment variables that are set."""
    return {name: os.environ[name] for name in sorted(set(names)) if name in os.environ}


def stamp(path: Path) -> str:
    """Size and time of change of a file; empty when there is none."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


@cache
def _software() -> Sequence[Any]:
    points = [_entry_point(point) for point in entry_points(group=_ENTRY_POINTS)]
    return [
        sys.version,
        [version(package) for package in _PACKAGES],
        _folder_stamps(Path(__file__).parents[1]),
        sorted(points),
    ]


def _entry_point(point: EntryPoint) -> list[str]:
    distribution = point.dist
    if distribution is None:
        return [point.name, point.value]
    folder = Path(str(distribution.locate_file("")), point.module.partition(".")[0])
    stamps = _folder_stamps(folder) if folder.is_dir() else []
    return [point.name, point.value, distribution.name, distribution.version, digest(stamps)]


def _registered_backends() -> list[Any] | None:
    """Backends that the process itself registered; a user's script may be one."""
    registry = sys.modules.get("byoc_mlir.backends.registry")
    if registry is None:
        return []
    known = {point.name for point in entry_points(group=_ENTRY_POINTS)}
    classes: Mapping[str, type[Backend]] = registry.registered_backends()
    found: list[Any] = []
    for name, cls in sorted(classes.items()):
        if name in known or cls.__module__.startswith("byoc_mlir."):
            continue
        source = Path(cls.codegen.__code__.co_filename)
        if not source.is_file():
            return None
        is_package = (source.parent / "__init__.py").is_file()
        stamps = _folder_stamps(source.parent) if is_package else [stamp(source)]
        found.append([name, str(source), stamps])
    return found


def _folder_stamps(folder: Path) -> list[list[str]]:
    return sorted([str(path), stamp(path)] for path in folder.rglob("*.py"))
