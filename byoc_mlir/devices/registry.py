"""Lookup of devices by name: registered in the process, or installed as an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TypeVar

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.devices.base import Device
from byoc_mlir.errors import BackendError, ByocError, DeviceError
from byoc_mlir.names import meant
from byoc_mlir.plugins import Plugins
from byoc_mlir.runtime.devices import missing

_devices = Plugins("device", Device, "byoc_mlir.devices", BackendError)

AnyDevice = TypeVar("AnyDevice", bound=Device)


def register_device(cls: type[AnyDevice]) -> type[AnyDevice]:
    """Registers a device class under its `name`; usable as a decorator.

    Raises:
        BackendError: the name is malformed or taken.
    """
    _devices.check(cls, "Device")
    name: object = getattr(cls, "name", None)
    if not isinstance(name, str) or not name.isidentifier() or name == HOST_SPACE:
        raise BackendError(
            f"device {cls.__name__}: `name` must be an identifier of C other than '{HOST_SPACE}'"
            f" (it is the prefix of the device's functions), found {name!r}"
        )
    _devices.add(name, cls)
    return cls


def registered_devices() -> Mapping[str, type[Device]]:
    """Returns the classes that are registered in the process, by name."""
    return dict(_devices.registered)


def identities(names: Iterable[str]) -> dict[str, str]:
    """Returns the identity of each named device on this machine.

    Raises:
        BackendError: as `get_device`.
        DeviceError: as `identity_of`.
    """
    return {name: identity_of(get_device(name)) for name in sorted(set(names))}


def identity_of(device: Device) -> str:
    """Returns the identity of a device on this machine.

    Raises:
        DeviceError: its class raises, as for a driver that is missing.
    """
    try:
        return device.identity()
    except ByocError:
        raise
    except Exception as error:  # code of another package, which may raise anything
        reason = device.unavailable() or f"identity() raises {type(error).__name__}: {error}"
        raise DeviceError(missing(device.name, reason)) from error


def device_names() -> Sequence[str]:
    """Returns the names of all known devices, sorted."""
    return _devices.names()


def get_device(name: str) -> Device:
    """Creates an instance of a device, even if this machine has none.

    Raises:
        BackendError: no device has that name, or its package cannot be loaded.
    """
    found = _devices.find(name, _register_installed)
    if found is None:
        known = device_names()
        raise BackendError(
            f"no device is named '{name}'; known are {', '.join(known) or 'none'}"
            f"{meant(name, known)}"
        )
    return found()


def _register_installed(point: EntryPoint) -> None:
    try:
        register_device(point.load())
    except Exception as error:  # code of another package, which may raise anything
        detail = f"{type(error).__name__}: {error}"
        raise BackendError(f"device '{point.name}' cannot be loaded: {detail}") from error
