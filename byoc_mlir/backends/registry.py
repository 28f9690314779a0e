"""Lookup of backends by name: registered in the process, or installed as an entry point."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from byoc_mlir.backends.base import API_VERSION, Backend
from byoc_mlir.backends.options import Target, settings_of
from byoc_mlir.boundary import check_argument
from byoc_mlir.errors import BackendError
from byoc_mlir.names import meant
from byoc_mlir.plugins import Plugins

ENTRY_POINT_GROUP = "byoc_mlir.backends"

_backends = Plugins("backend", Backend, ENTRY_POINT_GROUP, BackendError)

AnyBackend = TypeVar("AnyBackend", bound=Backend)


def register_backend(cls: type[AnyBackend]) -> type[AnyBackend]:
    """Registers a backend class under its `name`; usable as a decorator.

    A class that is defined again, as in a notebook, replaces its earlier version.

    Raises:
        BackendError: the name is malformed or taken, or the class follows another API version.
    """
    _backends.check(cls, "Backend")
    name: object = getattr(cls, "name", None)
    if not isinstance(name, str) or not name or "." in name:
        raise BackendError(
            f"backend {cls.__name__}: `name` must be a non-empty string without a dot"
            f" (it is the prefix of composite names), found {name!r}"
        )
    if cls.api_version not in range(1, API_VERSION + 1):
        raise BackendError(
            f"backend '{name}' was written for API version {cls.api_version}, this byoc_mlir has"
            f" version {API_VERSION} and accepts older ones; install a matching release of either"
        )
    check_argument(f"the priority of backend '{name}'", cls.priority, int, "a number", BackendError)
    _backends.add(name, cls)
    return cls


def registered_backends() -> Mapping[str, type[Backend]]:
    """Returns the classes that are registered in the process, by name."""
    return dict(_backends.registered)


def load_backend_module(spec: str) -> None:
    """Imports a user's module, `path/to/file.py` or `package.module`, that registers backends.

    Raises:
        BackendError: there is no such file or module, or it cannot be imported.
    """
    path = Path(spec)
    if spec.endswith(".py") and not path.is_file():
        raise BackendError(f"no backend file '{spec}'")
    with _imported(f"backend '{spec}'"):
        if not spec.endswith(".py"):
            importlib.import_module(spec)
            return
        module_spec = importlib.util.spec_from_file_location(path.stem, path)
        assert module_spec is not None
        assert module_spec.loader is not None
        module_spec.loader.exec_module(importlib.util.module_from_spec(module_spec))


@contextmanager
def _imported(what: str) -> Generator[None]:
    """Wraps any exception of a backend's code in a `BackendError`."""
    try:
        yield
    except (BackendError, Warning):
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise BackendError(f"{what} cannot be loaded: {detail}") from error


def backend_names() -> list[str]:
    """Returns the names of all known backends, sorted."""
    return _backends.names()


def get_backends(targets: Sequence[str]) -> list[Backend]:
    """Creates instances of the targets' backends, in the given order of preference.

    Raises:
        BackendError: a name is unknown or given twice, an option is not accepted, or a backend
          cannot run on this machine.
    """
    backends = [_usable(target) for target in targets]
    if len({backend.name for backend in backends}) != len(backends):
        raise BackendError(f"targets {list(targets)} name a backend twice")
    return backends


def _usable(target: str) -> Backend:
    backend = get_backend(target)
    reason = backend.unavailable()
    if reason is not None:
        raise BackendError(f"backend '{backend.name}' is not usable here: {reason}")
    return backend


def get_backend(target: str) -> Backend:
    """Creates an instance of a backend, even if this machine cannot run it.

    Args:
        target: its name, or its name with options, `mine{mode=fast}`.

    Raises:
        BackendError: no backend has that name, or it does not accept an option.
    """
    parsed = Target.parse(target)
    with _imported(f"backend '{parsed.name}'"):
        backend = _backend_class(parsed.name)()
    backend.settings = settings_of(parsed.name, backend.options, parsed.options)
    return backend


def _backend_class(name: str) -> Callable[[], Backend]:
    found = _backends.find(name, lambda point: register_backend(point.load()))
    if found is None:
        raise BackendError(
            f"no backend is named '{name}'; known are {', '.join(backend_names()) or 'none'}"
            f"{meant(name, backend_names())}"
        )
    return found
