"""Devices on which the backends of a compilation run."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends import Backend, get_backend
from byoc_mlir.devices import Device, get_device
from byoc_mlir.errors import BackendError, DeviceError
from byoc_mlir.runtime.devices import missing


def device_of(backend: Backend) -> Device | None:
    """Returns the device of a backend's regions; `None` for the host's memory.

    Raises:
        BackendError: there is no such device, or its package cannot be loaded.
    """
    space = backend.memory_space
    return None if space == HOST_SPACE else get_device(space)


def why_missing(backend: Backend) -> str | None:
    """Returns why this machine lacks the device of a backend, or `None`."""
    device = device_of(backend)
    reason = None if device is None else device.unavailable()
    return None if device is None or reason is None else missing(device.name, reason)


def why_unusable(backend: Backend) -> str | None:
    """Returns why a backend, or its device, is not usable here, or `None`."""
    try:
        return backend.unavailable() or why_missing(backend)
    except BackendError as error:  # its device cannot be loaded
        return str(error)


def check_devices(targets: Sequence[str]) -> None:
    """Checks that this machine has the targets' devices, before a model is compiled to be loaded.

    Raises:
        DeviceError: it lacks one.
    """
    for target in targets:
        reason = why_missing(get_backend(target))
        if reason is not None:
            raise DeviceError(f"{reason}; compile(load=False) compiles the model without it")
