"""Finding backends by name: registered in the process, or installed as an entry point."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from byoc_mlir.backends.base import API_VERSION, Backend
from byoc_mlir.errors import BackendError

ENTRY_POINT_GROUP = "byoc_mlir.backends"

_registered: dict[str, Callable[[], Backend]] = {}


def register_backend(cls: type[Backend]) -> type[Backend]:
    """Makes a backend class known under its `name`; usable as a decorator.

    Raises:
        BackendError: the name is malformed or taken, or the class follows another API version.
    """
    name: object = getattr(cls, "name", None)
    if not isinstance(name, str) or not name or "." in name:
        raise BackendError(
            f"backend {cls.__name__}: `name` must be a non-empty string without a dot"
            f" (it is the prefix of composite names), found {name!r}"
        )
    if cls.api_version != API_VERSION:
        raise BackendError(
            f"backend '{name}' was written for API version {cls.api_version}, this byoc_mlir has"
            f" version {API_VERSION}; install a matching release of either"
        )
    known = _registered.get(name)
    if known is not None and known is not cls:
        raise BackendError(f"a backend named '{name}' is registered already; choose another name")
    _registered[name] = cls
    return cls


def load_backend_module(spec: str) -> None:
    """Imports a user's module, `path/to/file.py` or `package.module`, that registers backends.

    Raises:
        BackendError: there is no such file or module.
    """
    if not spec.endswith(".py"):
        try:
            importlib.import_module(spec)
        except ModuleNotFoundError as error:
            raise BackendError(f"no backend module '{spec}': {error}") from error
        return
    path = Path(spec)
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or module_spec is None or module_spec.loader is None:
        raise BackendError(f"no backend file '{spec}'")
    module_spec.loader.exec_module(importlib.util.module_from_spec(module_spec))


def backend_names() -> list[str]:
    """The names of all known backends, sorted."""
    return sorted({*_registered, *(point.name for point in _entry_points())})


def get_backends(targets: Sequence[str]) -> list[Backend]:
    """New instances of the named backends, in the given order of preference.

    Raises:
        BackendError: a name is unknown or given twice, or a backend cannot run on this machine.
    """
    if len(set(targets)) != len(targets):
        raise BackendError(f"targets {list(targets)} name a backend twice")
    return [_usable(name) for name in targets]


def _usable(name: str) -> Backend:
    backend = get_backend(name)
    reason = backend.unavailable()
    if reason is not None:
        raise BackendError(f"backend '{name}' is not usable here: {reason}")
    return backend


def get_backend(name: str) -> Backend:
    """A new instance of the named backend, usable on this machine or not.

    Raises:
        BackendError: no backend has that name.
    """
    if name not in _registered:
        for point in _entry_points():
            if point.name == name:
                register_backend(point.load())
    if name not in _registered:
        raise BackendError(
            f"no backend is named '{name}'; known are {', '.join(backend_names()) or 'none'}"
        )
    return _registered[name]()


def _entry_points():
    return entry_points(group=ENTRY_POINT_GROUP)
