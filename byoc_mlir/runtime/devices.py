"""Devices of loaded programs: identities and errors."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from byoc_mlir.errors import DeviceError, ExecutionError, IncompatibleArtifactError
from byoc_mlir.runtime.program import ProgramDevice, SharedLibrary
from byoc_mlir.runtime.system.libraries import load_shared_library

if TYPE_CHECKING:
    from byoc_mlir.runtime.device_array import DeviceFunctions


def library_identity(name: str, library: Path | SharedLibrary) -> str:
    """Returns what the function `identity` of a device's library returns.

    Raises:
        ExecutionError: the library cannot be loaded, or lacks the function.
    """
    shared = library if isinstance(library, SharedLibrary) else SharedLibrary(library)
    try:
        function = load_shared_library(shared)[f"{name}_identity"]
    except AttributeError as error:
        raise ExecutionError(f"the library {shared.path} lacks {name}_identity") from error
    function.restype = ctypes.c_char_p
    text = cast(bytes | None, function())
    return text.decode(errors="replace") if text else ""


def refuse_incomplete(devices: Sequence[ProgramDevice], function: str) -> None:
    """Raises the error for a function of a device that its library does not define; returns for
    others.
    """
    for device in devices:
        if function.startswith(f"{device.name}_"):
            raise DeviceError(
                f"device '{device.name}': the library {device.library.path} lacks {function}"
            )


def check_identities(functions: Mapping[str, DeviceFunctions]) -> None:
    """Checks that the devices of this machine are those that a program was compiled for.

    Raises:
        DeviceError: one is another, or missing.
    """
    for one in functions.values():
        device, found = one.device, one.identity()
        if not found and not device.identity:
            raise DeviceError(missing(device.name, "its library finds none"))
        if device.identity and found != device.identity:
            raise DeviceError(
                f"the program was compiled for device '{device.name}', {device.identity}; this"
                f" machine has {found or 'none'}: compile the model again here"
            )


class _Plugin(Protocol):
    """Class of a device, of which only this is used where models run."""

    def unavailable(self) -> str | None: ...


@contextmanager
def explaining_absence(devices: Sequence[ProgramDevice]) -> Generator[None]:
    """Replaces the error of a program that cannot be loaded if a device's plug-in knows that the
    machine has no such device.
    """
    try:
        yield
    except (ExecutionError, IncompatibleArtifactError) as error:
        for device in devices:
            reason = _why_unavailable(device)
            if reason is not None:
                raise DeviceError(missing(device.name, reason)) from error
        raise


def missing(device: str, reason: str) -> str:
    """Returns the error message for a device that this machine lacks."""
    return f"device '{device}' is not usable here: {reason}"


def _why_unavailable(device: ProgramDevice) -> str | None:
    """Returns the reason that a device's plug-in gives, if it is installed and gives one."""
    module, _, name = device.plugin.partition(":")
    try:
        plugin: object = getattr(importlib.import_module(module), name)
        if not isinstance(plugin, type) or getattr(plugin, "name", None) != device.name:
            return None  # the program names something else, which is not called
        return cast("type[_Plugin]", plugin)().unavailable()
    except Exception:  # code of another package; there is an error to report already
        return None


def fail_on_device(
    functions: Mapping[str, DeviceFunctions], region: str, what: str, status: int
) -> None:
    """Raises the error for a status of a device, or of a region on one; returns for others."""
    for one in functions.values():
        if region == one.device.region:
            one.fail(what, status)
        if region in one.device.regions:
            one.fail(f"{what}: region {region}", status)


def refuse_fork(*_: object) -> NoReturn:
    """Refuses a call in a forked process, which has none of its parent's devices."""
    raise DeviceError(
        "a device cannot be used in a forked process; load the model after the fork, or start"
        " processes with the method 'spawn'"
    )
