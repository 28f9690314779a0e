"""Lookup of devices by name: registered in the process, or installed as an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.boundary import check_argument
from byoc_mlir.devices.base import Device
from byoc_mlir.errors import BackendError
from byoc_mlir.installed import installed_points
from byoc_mlir.names import meant, written_at

ENTRY_POINT_GROUP = "byoc_mlir.devices"

_registered: dict[str, type[Device]] = {}

AnyDevice = TypeVar("AnyDevice", bound=Device)


def register_device(cls: type[AnyDevice]) -> type[AnyDevice]:
    """Registers a device class under its `name`; usable as a decorator.

    Raises:
        BackendError: the name is malformed or taken.
    """
    check_argument("the device", cls, type, "a class derived from Device", BackendError)
    if Device not in cls.__mro__:
        raise BackendError(f"{cls.__name__} is no device: it is not derived from Device")
    name: object = getattr(cls, "name", None)
    if not isinstance(name, str) or not name.isidentifier() or name == HOST_SPACE:
        raise BackendError(
            f"device {cls.__name__}: `name` must be an identifier of C other than '{HOST_SPACE}'"
            f" (it is the prefix of the device's functions), found {name!r}"
        )
    known = _registered.get(name)
    if known is not None and written_at(known) != written_at(cls):
        raise BackendError(f"a device named '{name}' is registered already; choose another name")
    _registered[name] = cls
    return cls


def registered_devices() -> Mapping[str, type[Device]]:
    """Returns the classes that are registered in the process, by name."""
    return dict(_registered)


def identities(names: Iterable[str]) -> dict[str, str]:
    """Returns the identity of each named device on this machine.

    Raises:
        BackendError: as `get_device`.
    """
    return {name: get_device(name).identity() for name in sorted(set(names))}


def device_names() -> Sequence[str]:
    """Returns the names of all known devices, sorted."""
    return sorted({*_registered, *(point.name for point in installed_points(ENTRY_POINT_GROUP))})


def get_device(name: str) -> Device:
    """Creates an instance of a device, even if this machine has none.

    Raises:
        BackendError: no device has that name, or its package cannot be loaded.
    """
    if name not in _registered:
        _register_installed(name)
    if name not in _registered:
        raise BackendError(
            f"no device is named '{name}'; known are {', '.join(device_names()) or 'none'}"
            f"{meant(name, list(device_names()))}"
        )
    return _registered[name]()


def _register_installed(name: str) -> None:
    for point in installed_points(ENTRY_POINT_GROUP):
        if point.name == name:
            try:
                register_device(point.load())
            except Exception as error:  # code of another package, which may raise anything
                detail = f"{type(error).__name__}: {error}"
                raise BackendError(f"device '{name}' cannot be loaded: {detail}") from error
